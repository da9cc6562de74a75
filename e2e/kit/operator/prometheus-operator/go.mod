// Pins the definitions of the Prometheus operator, for the tests of the installation. Nothing of it is built.
module github.com/pod-reloader/pod-reloader/e2e/kit/operator/prometheus-operator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
