package chain_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/operator"
)

// The configuration of both graphs is that of docs/custom-resources.md.

const theRoute = "httproutes.gateway.networking.k8s.io/web"

// accepted is the status of a Gateway with one listener, and of an HTTPRoute with one parent, as their controllers write it.
const (
	accepted = `{conditions: [{type: Accepted, status: "True", observedGeneration: GENERATION}, {type: Programmed, status: Unknown}],
		listeners: [{name: https, conditions: [{type: ResolvedRefs, status: "True", observedGeneration: GENERATION}]}]}`
	refused = `{conditions: [{type: Accepted, status: "True", observedGeneration: GENERATION}],
		listeners: [{name: https, conditions: [{type: ResolvedRefs, status: "False", reason: InvalidCertificateRef, observedGeneration: GENERATION}]}]}`
	attached = `{parents: [{controllerName: example.com/gateway, parentRef: {name: web}, conditions: [
		{type: Accepted, status: "True", observedGeneration: GENERATION}, {type: ResolvedRefs, status: "True", observedGeneration: GENERATION}]}]}`
)

func TestARouteItsGatewayAndItsCertificate(t *testing.T) {
	t.Parallel()
	s := newGraphFixture(t, shared)
	s.Secret("web-tls", fixture.Data{"tls.crt": "1", "tls.key": "1"})
	s.Secret("other-tls", fixture.Data{"tls.crt": "1", "tls.key": "1"})
	s.make("Gateway", "web", `{gatewayClassName: example, listeners: [{name: https, port: 443, protocol: HTTPS,
		tls: {mode: Terminate, certificateRefs: [{group: "", kind: Secret, name: web-tls}]}}]}`)
	s.report("Gateway", "web", accepted)
	s.make("HTTPRoute", "web", `{parentRefs: [{name: web, sectionName: https}, {group: "", kind: Service, name: mesh}],
		hostnames: [web.example.com], rules: [{backendRefs: [{name: web, port: 80}]}]}`)
	s.report("HTTPRoute", "web", attached)
	w := s.tracks("web", theRoute)

	s.SetSecret("web-tls", "tls.crt", "2")
	s.rolls(w, "the certificate of the listener")
	s.AwaitEvent(w, "Reloaded", theRoute+" modified (secret/web-tls)")
	s.edit("HTTPRoute", "web", `{"hostnames":["www.example.com"]}`)
	s.report("HTTPRoute", "web", attached)
	s.rolls(w, "the route")
	s.SetSecret("other-tls", "tls.crt", "2")
	s.report("Gateway", "web", accepted)
	s.stays(w, "another Secret, and the same status")

	s.edit("Gateway", "web", `{"listeners":[{"name":"https","port":443,"protocol":"HTTPS","tls":{"certificateRefs":[{"name":"other-tls"}]}}]}`)
	s.report("Gateway", "web", refused)
	s.AwaitEvent(w, "ReferentHeld", "gateways.gateway.networking.k8s.io/web is not-ready: condition ResolvedRefs is \"False\", want True", "InvalidCertificateRef")
	s.stays(w, "the controller refuses the certificate")
	s.report("Gateway", "web", accepted)
	s.rolls(w, "another certificate, which is accepted")
	s.SetSecret("other-tls", "tls.crt", "3")
	s.rolls(w, "it counts now")
}

// A Gateway of another namespace, which the configuration allows.
func TestRouteFollowsGatewayOfAllowedNamespace(t *testing.T) {
	t.Parallel()
	s := newGraphFixture(t, shared)
	infra := *s.Fixture
	infra.Namespace = "gateways"
	platform := &graphFixture{Fixture: &infra}
	if err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: infra.Namespace}}); !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		require.NoError(t, s.Delete(context.WithoutCancel(t.Context()), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: infra.Namespace}}))
	})
	platform.Secret("tls", fixture.Data{"tls.crt": "1"})
	platform.make("Gateway", "shared", `{listeners: [{name: https, port: 443, tls: {certificateRefs: [{name: tls}]}}]}`)
	platform.report("Gateway", "shared", accepted)
	s.make("HTTPRoute", "web", `{parentRefs: [{kind: Gateway, name: shared, namespace: gateways}]}`)
	s.report("HTTPRoute", "web", attached)
	w := s.tracks("web", theRoute)
	platform.SetSecret("tls", "tls.crt", "2")
	s.rolls(w, "a Secret of the namespace of the Gateway")
	s.AwaitEvent(w, "Reloaded", theRoute+" modified (secret/gateways/tls)")

	s.edit("HTTPRoute", "web", `{"parentRefs":[{"name":"shared","namespace":"kube-system"}]}`)
	s.report("HTTPRoute", "web", attached)
	s.AwaitEvent(w, "ReferentHeld", "denied", "refs[0].namespaces does not allow the reference to gateways.gateway.networking.k8s.io/shared in namespace kube-system")
	s.edit("HTTPRoute", "web", `{"parentRefs":[{"kind":"Gateway","name":"shared","namespace":"gateways"}],"hostnames":["a.example.com"]}`)
	s.report("HTTPRoute", "web", attached)
	s.rolls(w, "it is allowed again")
}

const theCertificate = "certificates.cert-manager.io/web"

// The controllers of cert-manager issue the certificate.
func TestACertificateAndItsSecret(t *testing.T) {
	t.Parallel()
	s := newGraphFixture(t, shared)
	require.NoError(t, operator.RunCertManager(s.Patiently(), shared.ControlPlane()))
	s.make("Issuer", "ca", `{selfSigned: {}}`)
	s.make("Certificate", "web", `{secretName: web-tls, dnsNames: [web.example.com], issuerRef: {name: ca}}`)
	s.issued()
	w := s.tracks("web", theCertificate)

	s.edit("Certificate", "web", `{"renewBefore":"24h"}`)
	s.issued()
	s.stays(w, "an edit that changes no Secret")

	s.edit("Certificate", "web", `{"dnsNames":["web.example.com","www.example.com"]}`)
	s.rolls(w, "another certificate")
	s.AwaitEvent(w, "Reloaded", theCertificate+" modified", "secret/web-tls")
	s.issued()
	s.stays(w, "once")

	// The issuer does not exist yet: the Certificate is not ready, whatever is in its Secret.
	s.edit("Certificate", "web", `{"issuerRef":{"name":"later"}}`)
	s.AwaitEvent(w, "ReferentHeld", theCertificate+": not-ready", `condition Ready is "False", want True`)
	s.SetSecret("web-tls", "note", "1")
	s.stays(w, "it is held")
	s.make("Issuer", "later", `{selfSigned: {}}`) // unlike the one before, it has to issue before the Certificate is ready
	s.rolls(w, "it is ready again, and its Secret is another one")
}

// issued waits until cert-manager has seen the last edit of the Certificate, and is through with it.
func (s *graphFixture) issued() {
	s.Helper()
	s.Await("the certificate", func() error {
		u := s.read("Certificate", "web")
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		ready := false
		for _, c := range conditions {
			condition := c.(map[string]any)
			switch {
			case condition["type"] == "Ready":
				ready = condition["status"] == "True" && condition["observedGeneration"] == u.GetGeneration()
			case condition["type"] == "Issuing" && condition["status"] == "True":
				return errors.New("it is being issued")
			}
		}
		if !ready {
			return fmt.Errorf("its conditions are %v", conditions)
		}
		return nil
	})
}
