# Built by `make image`; needs a container engine and nothing else.
FROM golang:1.26 AS build
WORKDIR /src
# The modules are a layer of their own: they change less often than the code.
COPY go.mod go.sum ./
RUN go mod download
COPY *.go ./
COPY pkg pkg
COPY webhook webhook
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /pod-reloader .

# Static: no shell, no package manager, no user but nonroot (65532).
FROM gcr.io/distroless/static:nonroot
COPY --from=build /pod-reloader /pod-reloader
USER 65532:65532
ENTRYPOINT ["/pod-reloader"]
