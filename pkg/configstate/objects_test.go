package configstate_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func secret(namespace, name string, values ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{}}
	for i, value := range values {
		s.Data[fmt.Sprintf("key%d", i)] = []byte(value)
	}
	return s
}

func configMap(namespace, name string, values ...string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{}}
	for i, value := range values {
		c.Data[fmt.Sprintf("key%d", i)] = value
	}
	return c
}
