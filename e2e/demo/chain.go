package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/pod-reloader/pod-reloader/e2e/demo/scorecard"
)

// The custom resource that the Deployment proxy names, the Secret below it, and where the sub-commands of pod-reloader find
// the configuration.
const (
	customResource = "kafkaproxies.kroxylicious.io/proxy"
	leaf           = "secret/kafka-tls"
	fromSettings   = "--config=configmap:pod-reloader/pod-reloader"
)

// define makes the cluster serve the custom resources. It comes before the installation: pod-reloader follows a resource
// that is defined later, too, within a minute.
func (d *demo) define(ctx context.Context) error {
	if _, err := d.shell.brief(ctx, apply("e2e/demo/chain/resources.yaml")...); err != nil {
		return err
	}
	return d.cp.AwaitServed(ctx)
}

// configure writes how the custom resources refer to each other, and grants the permission to read them.
func (d *demo) configure(ctx context.Context) error {
	if d.reloader == nil {
		return nil
	}
	_, err := d.shell.brief(ctx, apply("e2e/demo/chain/configuration.yaml")...)
	return err
}

// reported writes the status of the KafkaService, as the operator of these resources does.
func (d *demo) reported(ctx context.Context, generation int, resolved string) (result, error) {
	return d.shell.run(ctx, kubectl("patch", "kafkaservice/kafka", "--subresource=status", "--type=merge", "-p", fmt.Sprintf(
		`{"status":{"observedGeneration":%d,"conditions":[{"type":"ResolvedRefs","status":%q}]}}`, generation, resolved))...)
}

// adopted is in the annotations of a workload whose pods are known to run with the custom resource as it is.
var adopted = regexp.MustCompile(regexp.QuoteMeta(customResource) + `[=~][0-9a-f]`)

// awaitAdoption waits until pod-reloader knows the state of the custom resource: each later change is one rollout.
func (d *demo) awaitAdoption(ctx context.Context) error {
	if d.reloader == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.options.patience)
	defer cancel()
	return d.watcher.Await(ctx, "the adoption of "+proxy.String(), func() error {
		for _, value := range d.watcher.Object(proxy).GetAnnotations() {
			if adopted.MatchString(value) {
				return nil
			}
		}
		return errors.New("its custom resource is not recorded yet")
	})
}

// deep: a Secret that the workload knows nothing of, three references below the resource that it names.
func (d *demo) deep(ctx context.Context) error {
	once := d.card.Promise("a Secret below a workload's custom resource changes", "1 rollout")
	named := d.card.Promise("why, about that rollout", "names "+leaf)
	windows, err := d.expect(ctx, once, 1, proxy)
	if err != nil {
		return err
	}
	d.narrator.Say("The annotation referents of proxy names a KafkaProxy. A VirtualKafkaCluster refers to that, and to a KafkaService, " +
		"whose certificate is in a Secret. pod-reloader graph shows it:")
	if _, err := d.shell.run(ctx, "pod-reloader", "graph", fromSettings, "-n", namespace, customResource); err != nil {
		return err
	}
	r, err := d.shell.run(ctx, set(leaf, "stringData", "tls.crt", "second")...)
	if err != nil {
		return err
	}
	if err := d.await(ctx, r.ended, windows...); err != nil {
		return err
	}
	r, err = d.shell.run(ctx, "pod-reloader", "why", fromSettings, "-n", namespace, "deployment/proxy")
	if err != nil {
		return err
	}
	named.Judge(scorecard.Named(customResource+" modified ("+leaf+")", scorecard.Source{Name: "its output", Text: r.stdout}))
	return nil
}

// held: what is not valid restarts nothing, and once when it is. Here the demo plays the operator.
func (d *demo) held(ctx context.Context) error {
	waits := d.card.Promise("a custom resource changes and is not valid", "0 rollouts")
	once := d.card.Promise("it becomes valid", "1 rollout")
	before, err := d.expect(ctx, waits, 0, proxy)
	if err != nil {
		return err
	}
	d.narrator.Say("A user edits the KafkaService. Its operator, which the demo plays, reports a reference that it cannot resolve.")
	_, err = d.shell.run(ctx, kubectl("patch", "kafkaservice/kafka", "--type=merge",
		"-p", `{"spec":{"bootstrapServers":"kafka-2.example.com:9093"}}`)...)
	if err != nil {
		return err
	}
	if _, err := d.reported(ctx, 2, "False"); err != nil {
		return err
	}
	beat, err := d.open(ctx, heartbeat)
	if err != nil {
		return err
	}
	d.narrator.Say("A change after that, which must act, shows that the proxy waits:")
	if err := d.beat(ctx, beat[0], 1); err != nil {
		return err
	}
	d.narrator.Seen("so far", fmt.Sprintf("%d rollouts of Deployment proxy", len(d.changes(before[0]))))
	if _, err := d.shell.run(ctx, "pod-reloader", "graph", fromSettings, "-n", namespace, customResource); err != nil {
		return err
	}
	after, err := d.expect(ctx, once, 1, proxy)
	if err != nil {
		return err
	}
	d.narrator.Say("The operator has resolved it:")
	r, err := d.reported(ctx, 2, "True")
	if err != nil {
		return err
	}
	return d.await(ctx, r.ended, after...)
}
