package options

import (
	"cmp"
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

// SharedLease returns the namespace, if a flag gives it, and the name of the lease, for tools. The error names the flag. InstallationName has
// what is wrong with that name.
func (f *Flags) SharedLease(env Environment) (namespace, name string, err error) {
	var p problems
	installation, _ := f.InstallationName(env)
	e := f.election.complete(&p, "", installation)
	return e.Namespace, e.Lease, errors.Join(p...)
}

// InstallationName returns the name of the installation, which is that of its Deployment unless a flag or a variable there says otherwise. The
// error names the flag or the variable.
func (f *Flags) InstallationName(env Environment) (string, error) {
	var p problems
	name := f.installationName(&p, env)
	return name, errors.Join(p...)
}

// KeySecret returns the name of the Secret with the digest keys, for tools. The error names the flag.
func (f *Flags) KeySecret() (string, error) {
	var p problems
	p.add("digest-key-secret", reference.ValidName(f.digestKeySecret))
	return f.digestKeySecret, errors.Join(p...)
}

// Inherit reads the arguments of a running manager into those flags of a tool that its command line does not have, and into those that say which
// installation it is: a tool finds its Deployment by its own. The error has each one that this version does not know; the others are read.
func (f *Flags) Inherit(tool *pflag.FlagSet, args []string) error {
	f.kept = map[string]bool{}
	f.all.VisitAll(func(flag *pflag.Flag) { f.kept[flag.Name] = flag.Changed || tool.Lookup(flag.Name) != flag })
	f.namespace, f.installation = "", ""
	f.kept["namespace"], f.kept["installation-name"] = false, false
	return f.Parse(args)
}

// InheritedNamespace returns the namespace of the digest key and the lease of a manager whose flags were inherited. Home is that of its pods.
func (f *Flags) InheritedNamespace(env Environment, home string) string {
	return cmp.Or(f.namespace, env.Getenv(podNamespace), env.Getenv(reloaderNamespace), home)
}
