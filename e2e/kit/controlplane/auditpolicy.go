package controlplane

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// AuditPolicy says whose requests are recorded, by user name as in [Identity].User. It holds for the
// life of a control plane.
type AuditPolicy struct {
	// Users are those whose requests are recorded without bodies. None means every user except
	// the components of the control plane and the administrator.
	Users []string
	// Bodies are users of whose writes the body of the request and of the response are recorded
	// as well; they need not be among Users.
	Bodies []string
	// WithoutReads leaves out get and list, for measuring: the API server writes two lines about each request while its
	// client waits, which is no small part of what a read takes.
	WithoutReads bool
}

// auditRule is a rule of an audit policy as the API server reads it; the first that fits holds.
type auditRule struct {
	Level      string   `json:"level"`
	Users      []string `json:"users,omitempty"`
	UserGroups []string `json:"userGroups,omitempty"`
	Verbs      []string `json:"verbs,omitempty"`
}

func kwokIdentity() Identity {
	return Identity{User: "kwok", Groups: Admin().Groups}
}

func (p AuditPolicy) rules() []auditRule {
	var rules []auditRule
	if p.WithoutReads {
		rules = append(rules, auditRule{Level: "None", Verbs: []string{"get", "list"}})
	}
	if len(p.Bodies) > 0 {
		rules = append(rules,
			auditRule{
				Level: "RequestResponse", Users: p.Bodies,
				Verbs: []string{"create", "update", "patch", "delete", "deletecollection"},
			},
			auditRule{Level: "Metadata", Users: p.Bodies})
	}
	if len(p.Users) > 0 {
		return append(rules, auditRule{Level: "Metadata", Users: p.Users}, auditRule{Level: "None"})
	}
	return append(rules,
		auditRule{Level: "None", Users: []string{
			Admin().User, kwokIdentity().User, "system:apiserver", "system:anonymous",
			"system:" + ControllerManager, "system:" + Scheduler,
		}},
		auditRule{Level: "None", UserGroups: []string{"system:serviceaccounts:kube-system"}},
		auditRule{Level: "Metadata"})
}

// write stores the policy for the API server. No stage is omitted: that a request was received is
// logged before it is served, and [AuditLog] relies on it.
func (p AuditPolicy) write(path string) error {
	content, err := yaml.Marshal(map[string]any{
		"apiVersion":        "audit.k8s.io/v1",
		"kind":              "Policy",
		"omitManagedFields": true,
		"rules":             p.rules(),
	})
	if err != nil {
		return fmt.Errorf("encode the audit policy: %w", err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	return nil
}
