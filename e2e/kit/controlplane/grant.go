package controlplane

import (
	"fmt"
	"strings"
)

// Grant gives a user permissions in the whole cluster, as YAML documents for [ControlPlane.Apply]: a ClusterRole of that name and its
// binding. The rules are in flow style, like "{apiGroups: [apps], resources: [deployments], verbs: [get]}".
func Grant(name string, to Identity, rules ...string) string {
	return fmt.Sprintf(`---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]q}
rules: [%[3]s]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]q}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]q}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[2]q}]
`, name, to.User, strings.Join(rules, ", "))
}
