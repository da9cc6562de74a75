# pod-reloader. `make` says what there is. Needed: Go, a C compiler (for the race
# detector), git and make; tools are built on demand from pinned modules
# (e2e/tools) into bin/: a control plane takes half an hour or longer on two cores, once.

# Older ones, such as the make of macOS, ignore .SHELLFLAGS: a recipe whose command fails would go on.
$(if $(filter oneshell,$(.FEATURES)),,$(error GNU make 3.82 or newer is needed, and this is $(MAKE_VERSION): on macOS, install it with brew and run gmake))

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION ?= $(shell git rev-parse --verify HEAD 2>/dev/null || echo unknown)

# What make release builds; images are for Linux, the rest is for pod-reloader why.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/arm64
IMAGE ?= pod-reloader:0.1.0
# The container engine: docker, podman or buildah. The base of the image, where it is not that of the Dockerfile.
ENGINE ?= docker
BASE ?=
# What make image builds for, and what make publish does.
IMAGE_PLATFORM ?= linux/$(shell go env GOARCH)
IMAGE_PLATFORMS ?= linux/amd64 linux/arm64
# Where make publish pushes to, such as ghcr.io/pod-reloader; flags of the engine's and of Helm's push.
REGISTRY ?=
PUSHFLAGS ?=
HELMFLAGS ?=

# The Kubernetes versions that the suites run on: the newest and the oldest that are pinned in e2e/tools.
K8S_VERSION ?= 1.36
K8S_OLDEST ?= 1.32
export K8S_VERSION

# With the flags of the program's build, what it shares with suites, tools and linters is compiled once. What is instrumented is shared with
# none of them, and the race detector needs a C compiler.
PLAIN_GOFLAGS := $(filter-out -trimpath,$(shell go env GOFLAGS))
export GOFLAGS := $(strip $(PLAIN_GOFLAGS) -trimpath)
export CGO_ENABLED := 0

TEST_TIMEOUT ?= 40m
# Half of the time that a test takes to link is for debugging information. make lint runs vet, once for all.
GO_TEST := go test -ldflags=-w -vet=off
INSTRUMENTED_TEST := GOFLAGS='$(PLAIN_GOFLAGS)' CGO_ENABLED=1 $(GO_TEST)
# AT_ONCE is how many packages are tested at the same time. By itself, the race detector waits for a second at the end of each package.
RACE_TEST := GORACE=atexit_sleep_ms=100 $(INSTRUMENTED_TEST) -race $(AT_ONCE)
TESTFLAGS ?=
FUZZTIME ?= 30s
# What make simulate runs: SEED=0 takes one from the clock, N=0 goes by FOR; REPLAY=FILE runs a kept history.
SEED ?= 0
N ?= 0
STEPS ?= 100
FAULTS ?= true
FOR ?= 2m
REPLAY ?=
SIMULATEFLAGS ?=
# The package directories that make mutate changes, after its flags (-sample 30); empty means the core.
MUTATE ?=
FUZZPKG ?= ./pkg/... ./webhook/...
# The packages whose tests run on a control plane.
ON_CONTROL_PLANE := /e2e/(kit|suite|demo|bench|cmd/cluster)
# What is compared with a real control plane at the pace of the models (make simulate-check), and what needs a container engine
# (make image-check).
APART := /e2e/(simulate/(check|apiserver/conformance)|suite/image)$$
# The suites that make test runs: what a change of the engine breaks first. The others take longer than all that make test does.
FIRST := ./e2e/suite/promise ./e2e/suite/sequence ./e2e/suite/watch
PKG ?= $(FIRST) $(shell go list ./... | grep -vE '$(ON_CONTROL_PLANE)|$(APART)')
# The suites that take longest begin first, so that none is left alone at the end.
LONGEST := ./e2e/suite/edge ./e2e/suite/install ./e2e/suite/chain ./e2e/suite/promise ./e2e/suite/docs ./e2e/suite/repository ./e2e/suite/kind ./e2e/bench
# Those that drive the program as a process of its own: the race detector would see the code of the tests alone, and
# doubles the processor time that they take from the control plane.
SUITES := /e2e/(suite|demo|bench|cmd/cluster)
# What leaves tests out under the race detector, by pkg/unraced and, in the simulator, by running fewer histories: here all are run.
THINNED := /(e2e/simulate|webhook|pkg/(chain|pattern|referent))$$
# Long sequences in one goroutine, of a package without a variable that changes: the race detector makes them seven times as slow, and sees
# no more than in the tests of its callers, webhook and pkg/reload.
UNRACED := /pkg/stamp$$

# $(call link,FILE,COMMAND,PACKAGE) makes an executable by a go build. One that a killed build has left incomplete has the build ID of a
# complete one, and go build would take it as up to date. So a build makes a new file, which then replaces FILE.
link = rm -f $(new) && $2 -o $(new) $3 && mv $(new) $1
new = $(dir $1).$(notdir $1).new

##@ Everyday

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "; printf "usage: make TARGET [VARIABLE=value]\n"} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## Build the program: bin/pod-reloader
	$(call link,bin/pod-reloader,CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)',.)

.PHONY: demo
demo: ## See the main job done on a real Kubernetes API server (KEEP=1 leaves it running)
	go run ./e2e/demo

.PHONY: cluster
cluster: ## Run a control plane until Ctrl-C and print its KUBECONFIG (K8S_VERSION=1.32: another version)
	go run ./e2e/cmd/cluster

# What the suites run. Without the variable each of them links it.
PROGRAM := $(CURDIR)/bin/e2e/pod-reloader
test test-oldest: export POD_RELOADER_PROGRAM := $(PROGRAM)

# client-go then panics where code writes to an object that belongs to a cache. It compares all that is cached each second; once is enough.
test test-unit: export KUBE_CACHE_MUTATION_DETECTOR := true

# Suites are not taken out of the cache: go test does not see which program and which version of Kubernetes a TestMain starts.
UNCACHED := -count 1

# go test discards what packages that pass have written: attempts that a slow machine has spoilt are in a file of notes.
.PHONY: test
test: ## Run the unit tests, the simulator, and the suites of promises, sequences and watches (PKG=./pkg/digest: one package)
	@if go list $(PKG) | grep -E '$(ON_CONTROL_PLANE)|$(APART)' >/dev/null; then $(MAKE) tools $(PROGRAM); fi
	@export POD_RELOADER_TEST_NOTES=$$(mktemp); all=$$(go list $(PKG)); status=0; \
	raced=$$(grep -vE '$(SUITES)|$(UNRACED)' <<<"$$all" || true); \
	if [ -n "$$raced" ]; then $(RACE_TEST) -timeout $(TEST_TIMEOUT) $(TESTFLAGS) $$raced || status=1; fi; \
	plain=$$(grep -E '$(SUITES)|$(UNRACED)|$(THINNED)' <<<"$$all" || true); \
	if [ -n "$$plain" ]; then $(GO_TEST) -timeout $(TEST_TIMEOUT) $(UNCACHED) $(TESTFLAGS) $$plain || status=1; fi; \
	if [ -s "$$POD_RELOADER_TEST_NOTES" ]; then echo "Notes of tests, passed or failed:"; sort "$$POD_RELOADER_TEST_NOTES"; fi; \
	rm -f "$$POD_RELOADER_TEST_NOTES"; exit $$status

.PHONY: test-suites
test-suites: ## Run the suites that make test leaves out
	@packages=$$(go list $(LONGEST) ./e2e/... | grep -E '$(ON_CONTROL_PLANE)' | grep -vE '$(APART)' | grep -vxFf <(go list $(FIRST)) | tr '\n' ' '); \
	$(MAKE) test PKG="$$packages"

.PHONY: test-unit
test-unit: ## Run the unit tests of the program, without building Kubernetes
	@$(MAKE) test PKG='. ./pkg/... ./webhook/...' AT_ONCE='-p 3' # some wait more than they compute

# Suites whose result does not depend on the version of Kubernetes: they are about what we measure, print, document and publish.
ANY_VERSION := /e2e/(bench|demo|cmd/cluster|suite/(configuration|docs|image|repository))
# What make test-oldest runs: all others, those of the kit included.
OLDEST ?= $(LONGEST) ./e2e/...
.PHONY: test-oldest
test-oldest: K8S_VERSION := $(K8S_OLDEST)
test-oldest: tools $(PROGRAM) ## Run the suites on the oldest supported Kubernetes (OLDEST=./e2e/suite/promise: one of them)
	$(GO_TEST) -p 3 -timeout $(TEST_TIMEOUT) $(UNCACHED) $(TESTFLAGS) \
	  $$(go list $(OLDEST) | grep -E '$(ON_CONTROL_PLANE)' | grep -vE '$(ANY_VERSION)')

.PHONY: bench
bench: tools ## Measure against the budgets: a table, and bench.json; fails where one is exceeded
	go run ./e2e/bench

.PHONY: fuzz
fuzz: ## Run every fuzz test for FUZZTIME: a time (30s) or a number of inputs (3000x)
	@for dir in $$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' $(FUZZPKG)); do \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(f \*testing\.F) {$$/\1/p' "$$dir"/*_test.go); do \
	    echo "fuzz $$target in $$dir for $(FUZZTIME)"; \
	    $(INSTRUMENTED_TEST) -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir"; \
	  done; \
	done

.PHONY: simulate
simulate: ## Hunt for histories that break a promise, in fake time (SEED= N= STEPS= FAULTS=false FOR=2m; REPLAY=FILE)
	@$(call link,bin/hunt,go build,./e2e/simulate/hunt)
	@bin/hunt $(if $(REPLAY),-replay $(REPLAY),-seed $(SEED) -n $(N) -steps $(STEPS) -faults=$(FAULTS) -for $(FOR)) $(SIMULATEFLAGS)

.PHONY: simulate-check
simulate-check: tools ## Replay histories on a real control plane, and compare what they leave with the models
	$(GO_TEST) -count 1 -timeout $(TEST_TIMEOUT) -v ./e2e/simulate/check ./e2e/simulate/apiserver/conformance

.PHONY: simulate-planted
simulate-planted: ## Plant faults into the program and see that the simulator finds each (SIMULATEFLAGS="-only NAME")
	go run ./e2e/simulate/planted $(SIMULATEFLAGS)

.PHONY: mutate
mutate: ## Change the code one operator at a time, and list what no unit test notices (MUTATE="pkg/stamp …"; takes hours)
	go run ./e2e/cmd/mutate $(MUTATE)

##@ Checks

.PHONY: lint
lint: lint-code verify-chart ## Run the linters, and check that chart and manifests render and agree

.PHONY: lint-code
lint-code: lint-tools ## Run the linters alone
	$(GOLANGCI_LINT) config verify
	$(GOLANGCI_LINT) run ./...

.PHONY: fmt
fmt: lint-tools ## Format the code
	$(GOLANGCI_LINT) fmt ./...

.PHONY: verify-chart
verify-chart: lint-tools ## Check that chart/ renders the same objects as manifests/
	$(GO_TEST) -count 1 -run 'TestManifests|TestChart|TestAlerts' ./e2e/suite/repository

.PHONY: reuse
reuse: ## Check that every file has its license
	$(GO_TEST) -count 1 -run TestReuse -v ./e2e/suite/repository

.PHONY: tidy
tidy: ## Check that go.mod and go.sum are tidy
	go mod tidy -diff

##@ Delivery

.PHONY: manifests
manifests: lint-tools ## Print the objects of the default installation
	@$(KUBECTL) kustomize manifests

.PHONY: image
image: dist/pod-reloader-$(subst /,-,$(IMAGE_PLATFORM)) ## Build the container image IMAGE for IMAGE_PLATFORM (ENGINE=docker, podman or buildah; BASE=…)
	$(ENGINE) build --platform $(IMAGE_PLATFORM) $(if $(BASE),--build-arg BASE=$(BASE)) \
	  --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) --tag $(IMAGE) .

.PHONY: image-check
image-check: release-tools ## Publish image and chart to a local registry, on an empty base, and run the program of the image (needs buildah)
	$(GO_TEST) -count 1 -timeout $(TEST_TIMEOUT) -v ./e2e/suite/image

BINARIES := $(addprefix dist/pod-reloader-,$(subst /,-,$(PLATFORMS)))

.PHONY: binaries
binaries: $(BINARIES) ## Build the program for PLATFORMS: dist/pod-reloader-OS-ARCHITECTURE

# The same source, VERSION and Go give the same bytes anywhere: what go build adds from git depends on the clone. An empty
# variable would have the value of go env -w, so these have values, but for GOEXPERIMENT: none stands for its default.
RELEASE_ENVIRONMENT := GOFLAGS=-mod=readonly GOWORK=off GOFIPS140=off GOEXPERIMENT= GOAMD64=v1 GOARM64=v8.0 CGO_ENABLED=0
dist/pod-reloader-%: FORCE
	@[ -z "$$(GOEXPERIMENT= go env GOEXPERIMENT)" ] || { echo 'go env -w has set GOEXPERIMENT, which changes the bytes of the program: run go env -u GOEXPERIMENT' >&2; exit 1; }
	$(call link,$@,$(RELEASE_ENVIRONMENT) GOOS=$(word 1,$(subst -, ,$*)) GOARCH=$(word 2,$(subst -, ,$*)) \
	  go build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)',.)

.PHONY: FORCE
FORCE: ;

.PHONY: sbom
sbom: $(BINARIES) ## Write a CycloneDX bill of materials beside each of the binaries: dist/*.cdx.json
	for binary in $(BINARIES); do go run ./e2e/cmd/sbom -version $(VERSION) $$binary >$$binary.cdx.json; done

.PHONY: release
release: binaries sbom ## Build what a release consists of: binaries, their SBOMs, and SHA256SUMS, in dist
	cd dist && sha256sum $(notdir $(BINARIES) $(addsuffix .cdx.json,$(BINARIES))) >SHA256SUMS

# An empty build cache compiles everything again; VERIFY_CACHE is the directory of another one.
VERIFY_CACHE ?=
.PHONY: verify-build
verify-build: release ## Build the release again, in another directory with an empty cache, and compare the bytes
	@work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; mkdir "$$work/source"; \
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --target-directory "$$work/source"; \
	GOCACHE=$(or $(VERIFY_CACHE),$$work/cache) $(MAKE) -C "$$work/source" release VERSION='$(VERSION)' PLATFORMS='$(PLATFORMS)'; \
	cp dist/SHA256SUMS "$$work/expected"; cd "$$work/source/dist"; sha256sum --check "$$work/expected"

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in what the program calls (asks vuln.go.dev)
	"$$(go run ./e2e/cmd/tools path govulncheck govulncheck)" . ./pkg/... ./webhook/...

RELEASE := $(patsubst v%,%,$(VERSION))

.PHONY: release-check
release-check: ## Check that the commit is that of the release VERSION=v1.2.3: chart, changelog, and nothing uncommitted
	@version=$$(sed -n 's/^version: //p' chart/pod-reloader/Chart.yaml); \
	[ "$$version" = '$(RELEASE)' ] || { echo "VERSION=$(VERSION), but chart/pod-reloader/Chart.yaml has the version $$version" >&2; exit 1; }
	@heading=$$(sed -n '/^## /{p;q;}' CHANGELOG.md); \
	[[ "$$heading" =~ ^'## $(RELEASE) - '[0-9]{4}-[0-9]{2}-[0-9]{2}$$ ]] || { \
	  echo "CHANGELOG.md begins with \"$$heading\": want \"## $(RELEASE) - \" and the date, such as 2026-12-31" >&2; exit 1; }
	@changed=$$(git status --porcelain); \
	[ -z "$$changed" ] || { printf 'there are files that are not committed:\n%s\n' "$$changed" >&2; exit 1; }

# The chart is made in a directory of its own: a release uploads the files dist/pod-reloader-*.
.PHONY: publish
publish: release-tools ## Push image and chart of VERSION=v1.2.3 to REGISTRY, as OCI artifacts
	@[[ '$(RELEASE)' =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$$ ]] || { echo 'VERSION=$(VERSION) is not the version of a release, such as v1.2.3' >&2; exit 1; }
	@[ -n '$(REGISTRY)' ] || { echo 'REGISTRY is empty: name the registry to push to, such as ghcr.io/pod-reloader' >&2; exit 1; }
	manifests=(); for platform in $(IMAGE_PLATFORMS); do \
	  image=$(REGISTRY)/pod-reloader:$(RELEASE)-$${platform//\//-}; \
	  $(MAKE) image IMAGE_PLATFORM=$$platform IMAGE=$$image VERSION=$(VERSION); \
	  $(ENGINE) push $(PUSHFLAGS) $$image; \
	  manifests+=(--manifest $$image); \
	done; \
	bin/crane/crane index append --tag $(REGISTRY)/pod-reloader:$(RELEASE) "$${manifests[@]}"
	rm -rf dist/chart; mkdir -p dist/chart; cp -R chart/pod-reloader dist/chart
	sed -i 's|^  repository: pod-reloader$$|  repository: $(REGISTRY)/pod-reloader|' dist/chart/pod-reloader/values.yaml
	bin/helm/helm package dist/chart/pod-reloader --version $(RELEASE) --app-version $(RELEASE) --destination dist/chart
	bin/helm/helm push dist/chart/pod-reloader-$(RELEASE).tgz oci://$(REGISTRY)/charts $(HELMFLAGS)

.PHONY: clean
clean: ## Remove what was built; tools are built anew next time
	rm -rf bin dist bench.json

.PHONY: $(PROGRAM)
$(PROGRAM):
	$(call link,$@,CGO_ENABLED=0 go build -trimpath -ldflags '-s -w',.)

##@ Tools, built by the others as needed

.PHONY: tools
tools: ## Build the control plane of K8S_VERSION and what else the suites need
	go run ./e2e/cmd/tools build etcd kubernetes-$(K8S_VERSION) kwok helm helm4 alerts cert-manager argo-rollouts

# What a tool's path is, once it is built.
GOLANGCI_LINT := bin/golangci-lint/golangci-lint
KUBECTL := bin/kubernetes-$(K8S_VERSION)/kubectl

.PHONY: lint-tools
lint-tools: ## Build the linter, kubectl, Helm and what tests alert rules
	go run ./e2e/cmd/tools build golangci-lint helm alerts kubernetes-$(K8S_VERSION)

.PHONY: release-tools
release-tools: ## Build Helm and crane
	go run ./e2e/cmd/tools build helm crane
