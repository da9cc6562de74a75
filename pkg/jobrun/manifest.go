package jobrun

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/record"
)

// Manifest is all that is needed to create a Job again. It is in a Secret from before the deletion until the Job exists, so
// that any leader can create it, and a user as well.
type Manifest struct {
	// Job is the one to create.
	Job *unstructured.Unstructured
	// UID is that of the Job that it replaces.
	UID string
	// RootCA is the UID of the ConfigMap kube-root-ca.crt in the namespace of that Job, which each namespace has one of: with another one,
	// the namespace was deleted and created again. It is empty if it could not be read.
	RootCA string
	// Reload explains the reload. Time and hash are those of the attempt: the new Job may get others.
	Reload record.LastReload
}

// ToCreate returns the Job to create. It has no managedFields: the API server makes the creator the owner of what is new, whatever they say.
func (m Manifest) ToCreate() *unstructured.Unstructured {
	job := m.Job.DeepCopy()
	job.SetManagedFields(nil)
	return job
}

// IsReplacement reports whether a Job was created from the Manifest: it names the Job that it replaces in an annotation in which the
// Manifest names that, too. An earlier leader may have created it under another --annotation-prefix.
func (m Manifest) IsReplacement(job Job) bool {
	stored := job.Annotations()
	for key, value := range m.Job.GetAnnotations() {
		if value == m.UID && stored[key] == m.UID {
			return true
		}
	}
	return false
}

// recreationLabel is the label of the Secrets, and uidKey has the UID of the Job that was deleted. Neither depends on --annotation-prefix.
// After a change of the prefix, a Job that was deleted before is still created again.
const recreationLabel = "pod-reloader.io/recreation"

// The keys of the Secret.
const (
	jobKey    = "job.json"
	uidKey    = "uid"
	fieldsKey = "managed-fields.json"
	reloadKey = "last-reload.json"
	rootCAKey = "kube-root-ca.crt.uid"
)

// Store says where the Secrets of an installation are.
type Store struct {
	// Namespace and Installation are those of the program.
	Namespace, Installation string
	Keys                    annotation.Keys
}

// longestLabel is the limit of the API server for the value of a label.
const longestLabel = 63

// Label returns the label of the Secrets of the installation.
func (s Store) Label() (key, value string) {
	value = s.Installation
	if len(value) > longestLabel {
		sum := sha256.Sum256([]byte(value))
		value = strings.TrimRight(value[:longestLabel-9], "-.") + "-" + hex.EncodeToString(sum[:4])
	}
	return recreationLabel, value
}

// Selector returns the label as kubectl takes it.
func (s Store) Selector() string {
	key, value := s.Label()
	return key + "=" + value
}

// Name returns the name of the Secret for the Job with a UID. Another attempt at the same Job has the same name.
func (s Store) Name(uid string) string {
	_, installation := s.Label()
	return installation + "-job-" + strings.ToLower(uid)
}

// Encode returns the Secret with a Manifest. The managedFields of the Job are beside it: server-side apply takes no manifest with them.
func (s Store) Encode(m Manifest) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(m.ToCreate().Object)
	if err != nil {
		return nil, fmt.Errorf("encode the Job: %w", err)
	}
	owners, err := json.Marshal(m.Job.GetManagedFields())
	if err != nil {
		return nil, fmt.Errorf("encode the managedFields of the Job: %w", err)
	}
	data := map[string]any{
		fieldsKey: base64.StdEncoding.EncodeToString(owners),
		jobKey:    base64.StdEncoding.EncodeToString(text),
		reloadKey: base64.StdEncoding.EncodeToString([]byte(m.Reload.String())),
		uidKey:    base64.StdEncoding.EncodeToString([]byte(m.UID)),
	}
	if m.RootCA != "" {
		data[rootCAKey] = base64.StdEncoding.EncodeToString([]byte(m.RootCA))
	}
	label, installation := s.Label()
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{
			"name": s.Name(m.UID), "namespace": s.Namespace,
			"labels": map[string]any{"app.kubernetes.io/name": "pod-reloader", label: installation},
		},
		"type": "Opaque",
		"data": data,
	}}, nil
}

// Decode reads the Manifest of a Secret. The error says that it is none.
func (s Store) Decode(secret *unstructured.Unstructured) (Manifest, error) {
	text, err := content(secret, jobKey)
	if err != nil {
		return Manifest{}, err
	}
	job := &unstructured.Unstructured{}
	if err := job.UnmarshalJSON(text); err != nil {
		return Manifest{}, fmt.Errorf("decode %s: %w", jobKey, err)
	}
	uid, _ := content(secret, uidKey)
	m := Manifest{Job: job, UID: string(uid)}
	if job.GetAPIVersion() != "batch/v1" || job.GetKind() != "Job" || job.GetName() == "" || job.GetNamespace() == "" || m.UID == "" {
		return Manifest{}, fmt.Errorf("decode %s: it is not a Job that replaces another one", jobKey)
	}
	// The guard lets the Job be created only with this key, under the present prefix.
	_ = unstructured.SetNestedField(job.Object, m.UID, "metadata", "annotations", s.Keys.RecreatedFrom)
	job.SetManagedFields(fieldsIn(secret))
	if text, err = content(secret, reloadKey); err != nil {
		return Manifest{}, err
	}
	if m.Reload, err = record.ParseLastReload(string(text)); err != nil {
		return Manifest{}, fmt.Errorf("decode %s: %w", reloadKey, err)
	}
	if _, known, _ := unstructured.NestedString(secret.Object, "data", rootCAKey); known {
		if text, err = content(secret, rootCAKey); err != nil {
			return Manifest{}, err
		}
		m.RootCA = string(text)
	}
	return m, nil
}

// fieldsIn returns the managedFields in a Secret; none where they cannot be read. Then pod-reloader keeps the fields of the Job.
func fieldsIn(secret *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	var fields []metav1.ManagedFieldsEntry
	if text, err := content(secret, fieldsKey); err != nil || json.Unmarshal(text, &fields) != nil {
		return nil
	}
	return fields
}

func content(secret *unstructured.Unstructured, key string) ([]byte, error) {
	value, ok, _ := unstructured.NestedString(secret.Object, "data", key)
	if !ok {
		return nil, errors.New("the Secret has no " + key)
	}
	text, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", key, err)
	}
	return text, nil
}
