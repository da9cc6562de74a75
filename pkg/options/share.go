package options

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Share adds some of the manager's flags to those of a tool, so that both write, explain and check them in the same way.
// What is read into them is what [Flags.CompleteShared] returns.
func (f *Flags) Share(set *pflag.FlagSet, names ...string) {
	for _, name := range names {
		flag := f.all.Lookup(name)
		flag.Annotations = map[string][]string{shared: nil}
		set.AddFlag(flag)
	}
}

// shared is the annotation of the flags of tools that are the manager's.
const shared = "shared"

// IsShared reports whether a flag of a tool is one of the manager's.
func IsShared(flag *pflag.Flag) bool {
	_, is := flag.Annotations[shared]
	return is
}

// CompleteShared validates those flags that tools share: which workloads are handled, and when they are reloaded. The error joins
// everything that is wrong; each part names its flag.
func (f *Flags) CompleteShared(env Environment) (Selection, Reload, error) {
	var p problems
	selection, reload := f.selection.complete(&p, env, &f.stakater), f.reload(&p, env)
	return selection, reload, errors.Join(p...)
}

// NamedNamespaces returns the only namespaces to handle, those of --namespaces-to-ignore included; empty means all.
func (f *Flags) NamedNamespaces(env Environment) []string {
	var p problems // CompleteShared has them
	return f.selection.named(&p, env)
}

// SharedLease returns the namespace, if a flag gives it, and the name of the lease, for tools. The error names the flag.
func (f *Flags) SharedLease(env Environment) (namespace, name string, err error) {
	var p problems
	installation := f.installationName(&p, env)
	e := f.election.complete(&p, "", installation)
	return e.Namespace, e.Lease, errors.Join(p...)
}

// InstallationName returns the name of the Deployment of the installation. SharedLease has what is wrong with it.
func (f *Flags) InstallationName(env Environment) string {
	var p problems
	return f.installationName(&p, env)
}

// KeySecret returns the name of the Secret with the digest keys, for tools. The error names the flag.
func (f *Flags) KeySecret() (string, error) {
	var p problems
	p.add("digest-key-secret", reference.ValidName(f.digestKeySecret))
	return f.digestKeySecret, errors.Join(p...)
}

// Inherit reads the arguments of a running manager into those flags of a tool that its command line does not have. The error has each one that
// this version does not know; the others are read.
func (f *Flags) Inherit(tool *pflag.FlagSet, args []string) error {
	f.kept = map[string]bool{}
	f.all.VisitAll(func(flag *pflag.Flag) { f.kept[flag.Name] = flag.Changed || tool.Lookup(flag.Name) != flag })
	return f.Parse(args)
}
