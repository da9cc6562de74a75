package stamp

import (
	"strings"
	"testing"

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
