package stamp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// strategyOf returns the strategy that the name of a test has: no test has one but those of TestSequencesUnderStrategies.
func strategyOf(test string) annotation.ReloadStrategy {
	for _, s := range []annotation.ReloadStrategy{annotation.Annotations, annotation.EnvVars} {
		if strings.Contains(test, "/"+string(s)+"/") {
			return s
		}
	}
	return annotation.ConfigHash
}

// managedOf reads what is managed on an object, what a strategy has written included.
func (w *world) managedOf(raw map[string]any) Managed {
	view, _ := w.reader.Read(workload.Object{Kind: w.kind, Raw: raw})
	return view.Managed
}

// Whatever else a reload writes goes with the hash: every sequence ends as it does without.
func TestSequencesUnderStrategies(t *testing.T) {
	t.Parallel()
	sequences := map[string]func(*testing.T){
		"Sequence27WriteThatCarriesOurAnnotations":               TestSequence27WriteThatCarriesOurAnnotations,
		"ReleaseOfAFullWorkloadKeepsTheRecord":                   TestReleaseOfAFullWorkloadKeepsTheRecord,
		"RecordOfTheNextVersionIsDroppedFromAFullWorkload":       TestRecordOfTheNextVersionIsDroppedFromAFullWorkload,
		"PurgedDummyWarns":                                       TestPurgedDummyWarns,
		"LastReloadWrittenWhileOptedOutDoesNotComeBack":          TestLastReloadWrittenWhileOptedOutDoesNotComeBack,
		"Sequence16LabelAndUndo":                                 TestSequence16LabelAndUndo,
		"Sequence17IgnoredByPut":                                 TestSequence17IgnoredByPut,
		"IgnoredChangeIsReloadedWhenTheLabelGoes":                TestIgnoredChangeIsReloadedWhenTheLabelGoes,
		"Sequence18ClientsDummyComesBackByUndo":                  TestSequence18ClientsDummyComesBackByUndo,
		"Sequence19LostKeyAndOptedOut":                           TestSequence19LostKeyAndOptedOut,
		"Sequence20HoldSurvivesALaterWebhook":                    TestSequence20HoldSurvivesALaterWebhook,
		"Sequence27RecordNeverMakesAWriteTooLarge":               TestSequence27RecordNeverMakesAWriteTooLarge,
		"Sequence28MissingAtCreateDeletedAndBack":                TestSequence28MissingAtCreateDeletedAndBack,
		"Sequence30RecordStripped":                               TestSequence30RecordStripped,
		"Sequence32ConstantChangeBetweenPasses":                  TestSequence32ConstantChangeBetweenPasses,
		"Sequence35RecordOfTheNextVersion":                       TestSequence35RecordOfTheNextVersion,
		"Sequence33WorkloadChangesSides":                         TestSequence33WorkloadChangesSides,
		"Sequence34PatternWhoseObjectsChangeInARelease":          TestSequence34PatternWhoseObjectsChangeInARelease,
		"Sequence04NewVersionTracksMore":                         TestSequence04NewVersionTracksMore,
		"Sequence01SecondWebhook":                                TestSequence01SecondWebhook,
		"SecondPassKeepsVerifiedReload":                          TestSecondPassKeepsVerifiedReload,
		"Sequence02StoredPoke":                                   TestSequence02StoredPoke,
		"Sequence03AnnotationsOfAnotherWorkload":                 TestSequence03AnnotationsOfAnotherWorkload,
		"Sequence04ListsGrow":                                    TestSequence04ListsGrow,
		"OptInByOtherDialectRestartsNothing":                     TestOptInByOtherDialectRestartsNothing,
		"Sequence05RequiredObjectComesLater":                     TestSequence05RequiredObjectComesLater,
		"Sequence06RequiredObjectReplaced":                       TestSequence06RequiredObjectReplaced,
		"Sequence10OptOutAndIn":                                  TestSequence10OptOutAndIn,
		"OptInThroughTheOtherDialectAfterAChangeRestartsNothing": TestOptInThroughTheOtherDialectAfterAChangeRestartsNothing,
		"Sequence13FrozenLeader":                                 TestSequence13FrozenLeader,
		"Sequence14Keys":                                         TestSequence14Keys,
		"Sequence15BackAgain":                                    TestSequence15BackAgain,
		"AdoptedContentAndBack":                                  TestAdoptedContentAndBack,
		"Sequence29RollbackOfTheFirstReleaseAfterInstalling":     TestSequence29RollbackOfTheFirstReleaseAfterInstalling,
		"Sequence29UndoAcrossAKeyRotation":                       TestSequence29UndoAcrossAKeyRotation,
		"Sequence29HelmGoesBack":                                 TestSequence29HelmGoesBack,
		"Sequence30UndoWhilePodReloaderIsDown":                   TestSequence30UndoWhilePodReloaderIsDown,
		"Sequence31PutThatLacksALaterWebhooksField":              TestSequence31PutThatLacksALaterWebhooksField,
	}
	for _, s := range []annotation.ReloadStrategy{annotation.Annotations, annotation.EnvVars} { //nolint:paralleltest // the sequences are parallel
		for name, sequence := range sequences {
			t.Run(string(s)+"/"+name, sequence)
		}
	}
}

// Once Reloader is gone, its strategy may go as well: what it has written stays, like any other part of the template.
func TestStrategyThatIsSwitchedOffRestartsNothing(t *testing.T) {
	t.Parallel()
	for _, s := range []annotation.ReloadStrategy{annotation.EnvVars, annotation.Annotations} {
		w := under(t, s)
		w.set(cm("b"), "B")
		w.at(t, 1, "the change")
		before := templateOf(w.stored)
		w.reader.Strategy = annotation.ConfigHash
		w.at(t, 1, "the flag")
		require.Nil(t, w.write(func(raw map[string]any) { annotate(raw, "other", "1") }))
		w.at(t, 1, "an edit outside of the template")
		assert.Equal(t, before, templateOf(w.stored), s)
		variable := w.env(variableB)
		w.set(cm("b"), "C")
		w.at(t, 2, "the next change")
		assert.Equal(t, variable, w.env(variableB), "it is a variable like any other")
	}
}
