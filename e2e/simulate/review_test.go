package simulate

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestReviewIsWhatEncodingJSONWrites(t *testing.T) {
	t.Parallel()
	dry := true
	for name, request := range map[string]admissionv1.AdmissionRequest{
		"update": {Object: runtime.RawExtension{Raw: []byte(`{"a":1}`)}, OldObject: runtime.RawExtension{Raw: []byte(`{"a":"\u003c"}`)}},
		"create": {Object: runtime.RawExtension{Raw: []byte(`{"a":1}`)}},
		"delete": {OldObject: runtime.RawExtension{Raw: []byte(`{"a":1}`)}},
		"none":   {},
		"looks like it": {
			UserInfo: authenticationv1.UserInfo{Username: withoutObjects}, Object: runtime.RawExtension{Raw: []byte(`{"a":1}`)},
			Options: runtime.RawExtension{Raw: []byte(`{"kind":"UpdateOptions"}`)}, DryRun: &dry,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request.UID = "1"
			review := &admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview"}, Request: &request}
			want, err := json.Marshal(review)
			require.NoError(t, err)
			got, err := encodeReview(review)
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got))
			again, err := json.Marshal(review)
			require.NoError(t, err)
			assert.Equal(t, string(want), string(again), "the review is as before")
		})
	}
}
