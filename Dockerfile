# Built by `make image`, which compiles the program first: the image has the bytes of the release, for each platform, and
# nothing is run in it, so that an image for another platform needs no emulation.
# The tag says what the base is, the digest which one it is. It has certificates of public authorities, which alerts by HTTPS
# need, and no shell, no package manager. Another one: make image BASE=…
ARG BASE=gcr.io/distroless/static-debian12:nonroot@sha256:d093aa3e30dbadd3efe1310db061a14da60299baff8450a17fe0ccc514a16639
FROM ${BASE}
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="pod-reloader" \
      org.opencontainers.image.description="Restarts the workloads whose running pods no longer match their configuration" \
      org.opencontainers.image.source="https://github.com/pod-reloader/pod-reloader" \
      org.opencontainers.image.documentation="https://github.com/pod-reloader/pod-reloader/blob/main/README.md" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY dist/pod-reloader-${TARGETOS}-${TARGETARCH} /pod-reloader
# A number: the kubelet cannot check a name against runAsNonRoot.
USER 65532:65532
ENTRYPOINT ["/pod-reloader"]
