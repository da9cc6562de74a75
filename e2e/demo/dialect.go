package main

import "context"

// dialect: the annotations of Stakater's Reloader, as users have them in their manifests.
func (d *demo) dialect(ctx context.Context) error {
	matched := d.card.Promise("Reloader's search: an object with a match", "1 rollout")
	unmatched := d.card.Promise("Reloader's search: an object without", "0 rollouts")
	d.narrator.Say("billing and mailer have reloader.stakater.com/search. Of their ConfigMaps, rates has reloader.stakater.com/match.")
	if _, err := d.expect(ctx, unmatched, 0, mailer); err != nil {
		return err
	}
	windows, err := d.expect(ctx, matched, 1, billing)
	if err != nil {
		return err
	}
	if _, err := d.shell.run(ctx, set("configmap/banner", "data", "TEXT", "second")...); err != nil {
		return err
	}
	r, err := d.shell.run(ctx, set("configmap/rates", "data", "VAT", "second")...)
	if err != nil {
		return err
	}
	return d.await(ctx, r.ended, windows...)
}
