package annotation

import (
	"iter"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// StakaterKeys are the names of the annotations of Reloader. Each may be another one.
type StakaterKeys struct {
	// Auto and Search are on workloads.
	Auto, Search string
	// Match and Ignore are on config objects.
	Match, Ignore string
	// ConfigMap, Secret and SecretProviderClass are on workloads, for one kind of config objects.
	ConfigMap, Secret, SecretProviderClass StakaterKindKeys
	// PausePeriod and PausedAt are on Deployments.
	PausePeriod, PausedAt string
}

// StakaterKindKeys are the names of the annotations for one kind of config objects.
type StakaterKindKeys struct {
	// Reload is a list of regular expressions, Auto a boolean, Exclude a list of names.
	Reload, Auto, Exclude string
}

const (
	stakaterDomain = "reloader.stakater.com"
	// rolloutStrategy is on Argo Rollouts; Reloader has no flag for another name.
	rolloutStrategy = stakaterDomain + "/rollout-strategy"
)

// NewStakaterKeys returns the names that Reloader has unless a flag says otherwise.
func NewStakaterKeys() StakaterKeys {
	const domain = stakaterDomain + "/"
	return StakaterKeys{
		Auto:        domain + "auto",
		Search:      domain + "search",
		Match:       domain + "match",
		Ignore:      domain + "ignore",
		PausePeriod: "deployment." + domain + "pause-period", PausedAt: "deployment." + domain + "paused-at",
		ConfigMap: StakaterKindKeys{
			Reload: "configmap." + domain + "reload", Auto: "configmap." + domain + "auto", Exclude: "configmaps.exclude." + domain + "reload",
		},
		Secret: StakaterKindKeys{
			Reload: "secret." + domain + "reload", Auto: "secret." + domain + "auto", Exclude: "secrets.exclude." + domain + "reload",
		},
		SecretProviderClass: StakaterKindKeys{
			Reload: "secretproviderclass." + domain + "reload", Auto: "secretproviderclass." + domain + "auto",
			Exclude: "secretproviderclasses.exclude." + domain + "reload",
		},
	}
}

// marked is the only value of Match and Ignore that counts.
const marked = "true"

// Marks reports whether an annotation of a config object counts: caches keep no other one. It makes no string of a long value.
func (k StakaterKeys) Marks(key, value []byte) bool {
	return (string(key) == k.Match || string(key) == k.Ignore) && string(value) == marked
}

// Has reports whether an annotation belongs to the dialect: caches keep those of a workload. Besides the keys these are all of
// Reloader's domain, since a misspelt one is reported.
func (k StakaterKeys) Has(key string) bool {
	return strings.Contains(key, stakaterDomain+"/") || key == k.Auto || key == k.Search || key == k.Match || key == k.Ignore ||
		key == k.PausePeriod || key == k.PausedAt || k.ConfigMap.has(key) || k.Secret.has(key) ||
		k.SecretProviderClass.has(key)
}

// in reports whether one of some annotations belongs to the dialect.
func (k StakaterKeys) in(annotations map[string]string) bool {
	for key := range annotations {
		if k.Has(key) {
			return true
		}
	}
	return false
}

func (k StakaterKindKeys) has(key string) bool {
	return key == k.Reload || key == k.Auto || key == k.Exclude
}

// onWorkload yields the keys that workloads have, for some kinds of config objects.
func (k *StakaterKeys) onWorkload(kinds []reference.Kind) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, key := range [...]string{k.Auto, k.Search, k.PausePeriod, k.PausedAt, rolloutStrategy} {
			if !yield(key) {
				return
			}
		}
		for _, kind := range kinds {
			of := k.Of(kind)
			if !yield(of.Reload) || !yield(of.Auto) || !yield(of.Exclude) {
				return
			}
		}
	}
}

// Of returns the names for a kind of config objects.
func (k StakaterKeys) Of(kind reference.Kind) StakaterKindKeys {
	switch kind {
	case reference.Secret:
		return k.Secret
	case reference.SecretProviderClass:
		return k.SecretProviderClass
	default:
		return k.ConfigMap
	}
}
