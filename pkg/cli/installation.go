package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/configuration"
	"github.com/pod-reloader/pod-reloader/pkg/options"
)

// registerInstallation adds the flags that say which Deployment has the flags of the manager.
func (s *shared) registerInstallation(cmd *cobra.Command) {
	s.flags = cmd.Flags()
	home := cmp.Or(s.environment.OwnNamespace(), "pod-reloader")
	cmd.Flags().StringVar(&s.home, "installation-namespace", home, "`namespace` of the installation, where its Deployment and its digest key are")
	s.manager.Share(cmd.Flags(), "installation-name")
	cmd.Annotations = map[string]string{inherits: ""}
}

// inherits is an annotation of commands that take the flags of the installation from its Deployment.
const inherits = "inherits"

// ofInstallation reports whether a command takes a flag from the Deployment of the installation. The name of that is one of the command line.
func ofInstallation(cmd *cobra.Command, flag *pflag.Flag) bool {
	_, taken := cmd.Annotations[inherits]
	return taken && options.IsShared(flag) && flag.Name != "installation-name"
}

// complete reads a command line, connects, and reads the command line again with the flags of the installation. What parse returns as
// missing is a usage error only if these flags do not add it.
func (s *shared) complete(ctx context.Context, p Process, parse func() (missing, err error)) (*rest.Config, error) {
	missing, err := parse()
	if err = errors.Join(err, s.checkInstallation()); err != nil {
		return nil, usageError{errors.Join(err, missing)}
	}
	warn(p, s.manager.SharedWarnings())
	config, err := s.cluster.connect(p)
	if err != nil && missing != nil {
		return nil, usageError{missing}
	}
	if err != nil {
		return nil, err
	}
	if err := s.inherit(ctx, p, config); err != nil {
		return nil, err
	}
	if missing, err = parse(); err != nil {
		return nil, usageError{fmt.Errorf("with the flags of the Deployment %s/%s, those of the command line take precedence: %w",
			s.home, s.manager.InstallationName(s.environment), err)}
	}
	if missing != nil {
		return nil, usageError{missing}
	}
	return config, nil
}

// checkInstallation checks the flags of registerInstallation.
func (s *shared) checkInstallation() error {
	if err := options.CheckNamespace(s.home); err != nil {
		return fmt.Errorf("--installation-namespace: %w", err)
	}
	return nil
}

// inherit takes over the flags and the variables of the installation, except for the flags that the command line has. A Deployment that
// cannot be read is a warning: the command line may have all of them. Only where the API server does not answer, the command ends.
func (s *shared) inherit(ctx context.Context, p Process, config *rest.Config) error {
	name := s.manager.InstallationName(s.environment)
	deployment, err := readDeployment(ctx, config, s.home, name)
	if err != nil {
		if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
			return fmt.Errorf("read the Deployment of the installation: %w", err)
		}
		warn(p, []error{fmt.Errorf("the flags of the installation are not known: name its Deployment with --installation-namespace and --installation-name, or repeat them: %w", err)})
		return nil
	}
	container, _, ok := containerOf(deployment)
	if !ok {
		return nil
	}
	own, manifest := s.environment.Getenv, variablesOf(container, deployment.Namespace)
	s.environment.Getenv = func(name string) string { return cmp.Or(manifest(name), own(name)) } // the manifest may refer to values elsewhere
	flags := s.manager.All()
	given := flags.Lookup("config").Changed
	if err := s.manager.Inherit(s.flags, argumentsOf(container, manifest)); err != nil {
		warn(p, []error{fmt.Errorf("flags of the installation are left out: %w", err)})
	}
	if !flags.Lookup("installation-name").Changed && s.environment.Getenv("RELOADER_DEPLOYMENT_NAME") == "" {
		if err := flags.Set("installation-name", name); err != nil {
			return err
		}
	}
	if given {
		return nil
	}
	return s.leaveOutFile(p)
}

// variableReference is what Kubernetes expands in an argument; two dollar signs are one that is meant.
var variableReference = regexp.MustCompile(`\$\$|\$\([^()]+\)`)

// argumentsOf returns the arguments of a container, with the values of its variables.
func argumentsOf(container corev1.Container, variable func(name string) string) []string {
	args := append(slices.Clone(container.Command[min(1, len(container.Command)):]), container.Args...)
	for i, arg := range args {
		args[i] = variableReference.ReplaceAllStringFunc(arg, func(text string) string {
			if text == "$$" {
				return "$"
			}
			return cmp.Or(variable(text[2:len(text)-1]), text)
		})
	}
	return args
}

// leaveOutFile leaves out a configuration that is a file in the pods of the installation, and none here.
func (s *shared) leaveOutFile(p Process) error {
	flags := s.manager.All()
	location, err := configuration.ParseLocation(flags.Lookup("config").Value.String())
	if err != nil || location.Path == "" {
		return nil //nolint:nilerr // parse reports it, with its flag
	}
	if _, err := os.Stat(location.Path); err == nil {
		return nil
	}
	warn(p, []error{fmt.Errorf("the configuration of the installation is the file %s in its pods: run the command there, or name a copy with --config", location.Path)})
	return flags.Set("config", "")
}

func readDeployment(ctx context.Context, config *rest.Config, namespace, name string) (*appsv1.Deployment, error) {
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, discoveryLimit)
	defer cancel()
	found, err := c.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	deployment := &appsv1.Deployment{}
	return deployment, runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, deployment)
}

// containerOf returns the container of a Deployment that runs pod-reloader or Reloader, or else the first one, and whether it is named so; ok
// is false if there is none.
func containerOf(deployment *appsv1.Deployment) (container corev1.Container, named, ok bool) {
	containers := deployment.Spec.Template.Spec.Containers
	if len(containers) == 0 {
		return corev1.Container{}, false, false
	}
	at := slices.IndexFunc(containers, isReloader)
	return containers[max(at, 0)], at >= 0, true
}

func isReloader(container corev1.Container) bool {
	return strings.Contains(strings.ToLower(container.Image+" "+container.Name), "reloader")
}

// variablesOf returns the variables of a container of a Deployment, as far as the manifest has their values.
func variablesOf(container corev1.Container, namespace string) func(name string) string {
	variables := map[string]string{}
	for _, v := range container.Env {
		variables[v.Name] = v.Value
		if from := v.ValueFrom; from != nil && from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace" {
			variables[v.Name] = namespace
		}
	}
	return func(name string) string { return variables[name] }
}
