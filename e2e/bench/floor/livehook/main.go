// Livehook is the floor of a reload that an admission webhook verifies: on a poke of a workload, the webhook reads the
// ConfigMap's metadata live and moves the poke into the pod template. It compares nothing and keeps no state.
//
//	livehook KUBECONFIG NAMESPACE CONFIGMAP ADDRESS DIRECTORY
//
// The directory has tls.crt and tls.key.
package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
)

type hook struct {
	configMaps metadata.ResourceInterface
	configMap  string
}

func main() {
	if len(os.Args) != 6 {
		log.Fatal("usage: livehook KUBECONFIG NAMESPACE CONFIGMAP ADDRESS DIRECTORY")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	config.QPS = -1
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	h := hook{metadata.NewForConfigOrDie(config).Resource(resource).Namespace(os.Args[2]), os.Args[3]}
	http.HandleFunc("POST /mutate", h.mutate)
	server := http.Server{
		Addr: os.Args[4], ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13},
	}
	log.Fatal(server.ListenAndServeTLS(filepath.Join(os.Args[5], "tls.crt"), filepath.Join(os.Args[5], "tls.key")))
}

func (h hook) mutate(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	var workload metav1.PartialObjectMetadata
	err := json.NewDecoder(r.Body).Decode(&review)
	if err == nil && review.Request != nil {
		err = json.Unmarshal(review.Request.Object.Raw, &workload)
	}
	if err != nil || review.Request == nil {
		http.Error(w, "want an AdmissionReview", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	if poke, ok := workload.Annotations["poke"]; ok {
		if _, err := h.configMaps.Get(r.Context(), h.configMap, metav1.GetOptions{}); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		review.Response.PatchType, review.Response.Patch = &kind, fmt.Appendf(nil, `[{"op":"remove","path":"/metadata/annotations/poke"},`+
			`{"op":"add","path":"/spec/template/metadata/annotations","value":{"hash":%q}}]`, poke)
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		log.Print(err)
	}
}
