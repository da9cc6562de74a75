// Noophook is the floor of an admission webhook: it reads the review, answers "allowed" and does nothing else.
//
//	noophook ADDRESS DIRECTORY
//
// The directory has tls.crt and tls.key. GET / answers 200 when it is ready.
package main

import (
	"crypto/tls"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: noophook ADDRESS DIRECTORY")
	}
	http.HandleFunc("POST /mutate", allow)
	http.HandleFunc("GET /", func(http.ResponseWriter, *http.Request) {})
	server := http.Server{
		Addr: os.Args[1], ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13},
	}
	log.Fatal(server.ListenAndServeTLS(filepath.Join(os.Args[2], "tls.crt"), filepath.Join(os.Args[2], "tls.key")))
}

func allow(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "want an AdmissionReview", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		log.Print(err)
	}
}
