package edge_test

import (
	"testing"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// The tests of this file have control planes of their own. They take the longest, mostly by waiting, and begin first: so the others run
// beside them.

// TestProxies is about proxies between the program and the API server that hold back answers, or cut them short.
func TestProxies(t *testing.T) {
	t.Parallel()
	installation.InTurn(t, controlplane.Podless(), []installation.Turn{
		{Name: "WatchThatIsNeverAnswered", Run: watchThatIsNeverAnswered},
		{Name: "ListsThatEndEarly", Run: listsThatEndEarly},
		{Name: "DefinitionThatIsDeletedUnseen", Run: definitionThatIsDeletedUnseen},
	})
}

// TestLosses takes the digest key and permissions, then the certificate, the webhook, and then the API server, away from one installation.
func TestLosses(t *testing.T) {
	t.Parallel()
	in := installation.New(t, controlplane.New(t, controlplane.Podless()), installation.Options{
		KeepRunning: true, LongLease: true,
		Args: []string{"--refractory=0s", "--settle=200ms", "--certificate-dns-names=" + installation.ServiceName},
	})
	t.Run("DigestKey", func(t *testing.T) { digestKeyThatCannotBeUsed(t, in) })
	if t.Run("PermissionToStamp", func(t *testing.T) { checkNamesWhyTheWebhookDoesNotStamp(t, in) }) && // else it may be missing still
		t.Run("Permission", func(t *testing.T) { secretThatMayNotBeRead(t, in) }) &&
		t.Run("PermissionsToWatch", func(t *testing.T) { permissionsToWatchAreWithdrawn(t, in) }) {
		t.Run("Certificate", func(t *testing.T) { certificateForAnotherName(t, in) })
		t.Run("WebhookWithFail", func(t *testing.T) { webhookThatFailsWrites(t, in) })
		t.Run("APIServer", func(t *testing.T) { changesDuringRestartsOfTheAPIServer(t, in) })
	}
}

// TestSettings needs an installation with other flags for each test.
func TestSettings(t *testing.T) {
	t.Parallel()
	installation.InTurn(t, controlplane.Podless(), []installation.Turn{
		{Name: "MissingRequiredReload", Run: missingRequiredReload},
		{Name: "ObjectSelector", Run: scopeOfObjectSelector},
		{Name: "ReloadIsPostedOnce", Run: reloadIsPostedOnce},
		{Name: "ChangeIsPostedInsteadOfAReload", Run: changeIsPostedInsteadOfAReload},
		{Name: "ReloadDespiteSinkThatHangs", Run: reloadDespiteSinkThatHangs},
		{Name: "ReloadDespiteSinkThatFails", Run: reloadDespiteSinkThatFails},
		{Name: "StampThatIsNotStored", Run: stampThatIsNotStored},
		{Name: "CreatedForAPattern", Run: func(t *testing.T, cp *controlplane.ControlPlane) { t.Helper(); createdForAPattern(t, cp, false) }},
		{Name: "DeletedOfAPattern", Run: deletedOfAPattern},
		{Name: "DeniedByNotFound", Run: deniedByNotFound},
		{Name: "OtherNames", Run: otherNames}, // the guard stays, and refuses what has the default prefix
	})
}

// TestWithoutWebhook is about direct mode, and about a clock in both modes.
func TestWithoutWebhook(t *testing.T) {
	t.Parallel()
	installation.InTurn(t, controlplane.Podless(), []installation.Turn{
		{Name: "DirectMode", Run: directMode},
		{Name: "ClockAheadInDirectMode", Run: func(t *testing.T, cp *controlplane.ControlPlane) { t.Helper(); reloadByAClockThatIsAhead(t, cp, true) }},
		{Name: "CreatedForAPatternInDirectMode", Run: func(t *testing.T, cp *controlplane.ControlPlane) { t.Helper(); createdForAPattern(t, cp, true) }},
		{Name: "WebhookForCreationsOnly", Run: webhookForCreationsOnly},
		{Name: "LateWriteOfFrozenLeader", Run: lateWriteOfFrozenLeader},
		{Name: "ClockAhead", Run: func(t *testing.T, cp *controlplane.ControlPlane) { t.Helper(); reloadByAClockThatIsAhead(t, cp, false) }},
	})
}

// TestScopes needs an installation with another scope for each test.
func TestScopes(t *testing.T) {
	t.Parallel()
	installation.InTurn(t, controlplane.Podless(), []installation.Turn{
		{Name: "Namespaces", Run: scopeOfNamespaces}, // with no permission anywhere else: what follows is given some
		{Name: "NamespaceSelector", Run: scopeOfNamespaceSelector},
		{Name: "LongestLists", Run: longestListsDelayNoOtherWorkload},
	})
}
