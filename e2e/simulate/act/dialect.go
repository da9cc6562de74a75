package act

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Annotations of Stakater's Reloader, the second dialect.
const (
	otherDomain = "reloader.stakater.com/"
	otherAuto   = otherDomain + "auto"
	otherSearch = otherDomain + "search"
	otherPause  = "deployment." + otherDomain + "pause-period"
	pausedAt    = "deployment." + otherDomain + "paused-at"

	otherConfigMaps, otherSecrets             = "configmap." + otherDomain + "reload", "secret." + otherDomain + "reload"
	otherAutoConfigMap, otherAutoSecret       = "configmap." + otherDomain + "auto", "secret." + otherDomain + "auto"
	otherWithoutConfigMap, otherWithoutSecret = "configmaps.exclude." + otherDomain + "reload", "secrets.exclude." + otherDomain + "reload"
)

const (
	// AskReloader is the act by which a workload uses the second dialect.
	AskReloader = "ask-reloader"
	// AskPause is the act by which a Deployment is to be paused with each reload.
	AskPause = "ask-pause"
	// ShortPause is a period for it where time is real.
	ShortPause = "4s"
	// AnnotateForReloader is the act that sets one of its annotations on a config object.
	AnnotateForReloader = "annotate-for-reloader"
)

// wishes are what a workload can ask for in the second dialect.
func wishes() []string {
	return []string{
		"auto", "configmap-auto", "secret-auto", "named", "patterns", "search", "auto-but", "but-all", "auto-false", "on-template", "none",
	}
}

func dialectActs() []act {
	rolled := []world.Resource{world.Deployments, world.StatefulSets, world.DaemonSets}
	return []act{
		{
			name: AskReloader, weight: 5, on: onWorkload(rolled...),
			with:  []parameter{required("for", isOneOf(wishes()...), pick(wishes()...)), oneOf("lists", "removed", "kept")},
			words: "user annotates {on} for Reloader: {for} (lists of pod-reloader: {lists})",
			do:    askReloader,
		},
		{
			name: AskPause, weight: 3, on: onWorkload(world.Deployments),
			with:  []parameter{optional("period", "15s", isOneOf(ShortPause, "15s", "40s", "absent", "soon"), pick("15s", "15s", "40s", "absent", "soon"))},
			words: "user asks for a pause of {on} with each reload: {period}",
			do: func(ctx context.Context, c client, s step) error {
				period := world.Object{otherPause: s.text("period")}
				if s.text("period") == "absent" {
					period[otherPause] = nil
				}
				return c.merge(ctx, s.key, "kubectl-annotate", metadata("annotations", period))
			},
		},
		{
			name: AnnotateForReloader, weight: 4, on: onConfig(configResources()...),
			with: []parameter{
				oneOf("annotation", "match", "match", "ignore"), oneOf("value", "true", "true", "false", "absent"),
			},
			words: "user sets Reloader's annotation {annotation} of {on}: {value}",
			do: func(ctx context.Context, c client, s step) error {
				annotation := world.Object{otherDomain + s.text("annotation"): s.text("value")}
				if s.text("value") == "absent" {
					annotation[otherDomain+s.text("annotation")] = nil
				}
				return c.merge(ctx, s.key, "kubectl-annotate", metadata("annotations", annotation))
			},
		},
	}
}

// askReloader replaces the annotations of the second dialect.
func askReloader(ctx context.Context, c client, s step) error {
	wanted, err := wish(s.key, s.text("for"))
	if err != nil {
		return err
	}
	live, err := c.get(ctx, s.key)
	if err != nil {
		return err
	}
	annotations := world.Object{}
	for _, key := range otherKeys() {
		annotations[key] = nil
	}
	if s.text("lists") == "removed" {
		annotations[listOfConfigMaps], annotations[listOfSecrets] = nil, nil
	}
	body := world.Object{}
	if s.text("for") == "on-template" {
		body = inTemplate(s.key.Resource, metadata("annotations", wanted))
	} else {
		maps.Copy(annotations, wanted)
		if _, there := world.Annotations(templateOf(s.key.Resource, live))[otherAuto]; there {
			body = inTemplate(s.key.Resource, metadata("annotations", world.Object{otherAuto: nil}))
		}
	}
	maps.Copy(body, metadata("annotations", annotations))
	return c.merge(ctx, s.key, "kubectl-annotate", body)
}

// otherKeys are all keys that workloads may have.
func otherKeys() []string {
	return []string{
		otherAuto, otherSearch, otherConfigMaps, otherSecrets, otherAutoConfigMap, otherAutoSecret, otherWithoutConfigMap, otherWithoutSecret,
	}
}

// wish returns the annotations by which a workload asks for something.
func wish(key world.Key, asked string) (world.Object, error) {
	p, err := planOf(key)
	if err != nil {
		return nil, err
	}
	switch asked {
	case "auto", "on-template":
		return world.Object{otherAuto: "true"}, nil
	case "configmap-auto":
		return world.Object{otherAutoConfigMap: "true"}, nil
	case "secret-auto":
		return world.Object{otherAutoSecret: "true", otherAutoConfigMap: "false"}, nil
	case "named":
		return world.Object{otherConfigMaps: p.configMaps, otherSecrets: p.secrets}, nil
	case "patterns":
		return world.Object{otherConfigMaps: "app, ex.*, l[a-z]te", otherSecrets: "(db|tls)"}, nil
	case "search":
		return world.Object{otherSearch: "true"}, nil
	case "auto-but":
		return world.Object{otherAuto: "true", otherWithoutConfigMap: "extra", otherWithoutSecret: " db "}, nil
	case "but-all":
		return world.Object{otherWithoutConfigMap: "app,extra,late", otherWithoutSecret: "db,tls"}, nil
	case "auto-false":
		return world.Object{otherAuto: "false", otherConfigMaps: "app"}, nil
	case "none":
		return world.Object{}, nil
	}
	return nil, fmt.Errorf("%q is none of %s", asked, strings.Join(wishes(), ", "))
}

// wishParameter is what a workload that is made anew asks for in the second dialect, instead of its lists; mostly it has the lists.
// CronJobs are left out: they have other rules there.
func wishParameter() parameter {
	drawWish := seldom(4, pick(wishes()...))
	return optional("asks", omit, isOneOf(wishes()...), func(r *rand.Rand, on world.Key) string {
		if on.Resource == world.CronJobs {
			return omit
		}
		return drawWish(r, on)
	})
}

// asking returns a manifest in which the lists are replaced by what is asked for in the second dialect.
func asking(key world.Key, manifest world.Object, asked string) (world.Object, error) {
	wanted, err := wish(key, asked)
	if err != nil {
		return nil, err
	}
	path := []string{"metadata", "annotations"}
	kept := without(world.Annotations(manifest), isList)
	if asked == "on-template" {
		manifest = world.With(manifest, kept, path...)
		path = slices.Concat(world.PodPath(key.Resource.Plural), path)
		kept = world.Annotations(templateOf(key.Resource, manifest))
	}
	all := world.Object{}
	maps.Copy(all, kept)
	maps.Copy(all, wanted)
	return world.With(manifest, all, path...), nil
}
