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
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// registerInstallation adds the flags that say which Deployment has the flags of the manager.
func (s *shared) registerInstallation(cmd *cobra.Command) {
	s.flags = cmd.Flags()
	home := cmp.Or(s.environment.OwnNamespace(), "pod-reloader")
	cmd.Flags().StringVar(&s.home, "installation-namespace", home, "`namespace` of the installation, where its Deployment is, and its digest key unless the Deployment names another one")
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
// missing is a usage error only if these flags do not add it. What is not known of the installation is for the caller to report.
func (s *shared) complete(ctx context.Context, p Process, parse func() (missing, err error)) (*rest.Config, error) {
	missing, err := parse()
	if err = errors.Join(err, s.checkInstallation()); err != nil {
		return nil, usageError{errors.Join(err, missing)}
	}
	defer func() { warn(p, s.manager.SharedWarnings()) }() // of the values of the installation, too, if it gets so far
	name, _ := s.manager.InstallationName(s.environment)   // checkInstallation has checked it
	config, err := s.cluster.connect(p)
	if err != nil && missing != nil {
		return nil, usageError{missing}
	}
	if err == nil {
		err = s.inherit(ctx, config, name)
	}
	if err != nil && missing != nil {
		return nil, usageError{errors.Join(err, missing)} // with the flags of the installation, it may not be missing
	}
	if err != nil {
		return nil, err
	}
	if missing, err = parse(); err != nil {
		err = fmt.Errorf("with the flags of the Deployment %s/%s, those of the command line take precedence: %w", s.home, name, err)
	}
	if err = errors.Join(err, missing); err != nil {
		warn(p, s.unknown)
		return nil, usageError{err}
	}
	return config, nil
}

// checkInstallation checks the flags of registerInstallation.
func (s *shared) checkInstallation() error {
	_, err := s.manager.InstallationName(s.environment)
	if problem := options.CheckNamespace(s.home); problem != nil {
		err = errors.Join(err, fmt.Errorf("--installation-namespace: %w", problem))
	}
	return err
}

// inherit takes over the flags and the variables of the installation, except for the flags that the command line has. A Deployment that
// cannot be read is not known: the command line may have all of them. Only where the API server does not answer, the command ends.
func (s *shared) inherit(ctx context.Context, config *rest.Config, name string) error {
	s.own = s.home
	deployment, err := readDeployment(ctx, config, s.home, name)
	if err != nil {
		if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
			return fmt.Errorf("read the Deployment of the installation: %w", err)
		}
		s.reportUnknown("the flags of the installation are not known: name its Deployment with --installation-namespace and --installation-name, or repeat them: %w", err)
		return nil
	}
	container, named, ok := containerOf(deployment)
	if !ok {
		return nil
	}
	if !named {
		s.reportUnknown("no container of the Deployment %s/%s has the name or the image of pod-reloader: check --installation-name; the flags of its first container are taken",
			s.home, name)
	}
	inPod := s.environment.OwnNamespace() == s.home
	variable := variablesOf(container, deployment, s.environment.Getenv)
	s.environment.Getenv = variable
	given := s.manager.All().Lookup("config").Changed
	if err := s.manager.Inherit(s.flags, argumentsOf(container, variable)); err != nil {
		s.reportUnknown("flags of the installation are left out: %s", reference.OneLine(err.Error()))
	}
	s.own = s.manager.InheritedNamespace(s.environment, deployment.Namespace)
	if given {
		return nil
	}
	return s.leaveOutFile(inPod)
}

// reportUnknown keeps what is not known of the installation.
func (s *shared) reportUnknown(format string, args ...any) {
	s.unknown = append(s.unknown, fmt.Errorf(format, args...))
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

// leaveOutFile leaves out a configuration that is a file in the pods of the installation, and none here. A file elsewhere is another one.
func (s *shared) leaveOutFile(inPod bool) error {
	flags := s.manager.All()
	location, err := configuration.ParseLocation(flags.Lookup("config").Value.String())
	if err != nil || location.Path == "" {
		return nil //nolint:nilerr // parse reports it, with its flag
	}
	if _, err := os.Stat(location.Path); err == nil && inPod {
		return nil
	}
	s.reportUnknown("the configuration of the installation is the file %s in its pods: run the command there, or name a copy with --config", location.Path)
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

// isReloader is false for a container that reloads the configuration of another program, as those of Prometheus have it.
func isReloader(container corev1.Container) bool {
	text := strings.ToLower(container.Image + " " + container.Name)
	return strings.Contains(text, "reloader") && !strings.Contains(text, "config-reloader")
}

// variablesOf returns the variables of a container in a pod of a Deployment; elsewhere has those whose values are not in the manifest.
func variablesOf(container corev1.Container, deployment *appsv1.Deployment, elsewhere func(name string) string) func(name string) string {
	variables := map[string]string{}
	for _, v := range container.Env {
		switch from := v.ValueFrom; {
		case from == nil:
			variables[v.Name] = v.Value
		case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace":
			variables[v.Name] = deployment.Namespace
		case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.name":
			variables[v.Name] = deployment.Name + "-replica-aaaaa"
		default:
			variables[v.Name] = elsewhere(v.Name)
		}
	}
	return func(name string) string {
		if value, ok := variables[name]; ok || len(container.EnvFrom) == 0 {
			return value
		}
		return elsewhere(name)
	}
}
