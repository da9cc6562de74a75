package install_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// volume is a directory with the keys of a Secret or a ConfigMap, made as a kubelet makes it: each file is a link into ..data,
// which is a link to the directory of the present version. An update swaps the one link ..data, so that all files change
// at once and none of them is ever written to.
type volume struct {
	of   client.ObjectKey
	read func(ctx context.Context, from client.Reader, of client.ObjectKey) (map[string][]byte, error)
	dir  string
	// version is the directory that ..data leads to.
	version string
}

func secretData(ctx context.Context, from client.Reader, of client.ObjectKey) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := from.Get(ctx, of, secret)
	return secret.Data, err
}

func configMapData(ctx context.Context, from client.Reader, of client.ObjectKey) (map[string][]byte, error) {
	configMap := &corev1.ConfigMap{}
	err := from.Get(ctx, of, configMap)
	data := map[string][]byte{}
	for key, value := range configMap.Data {
		data[key] = []byte(value)
	}
	return data, err
}

// refresh brings the directory to what the object has now.
func (v *volume) refresh(ctx context.Context, from client.Reader) error {
	data, err := v.read(ctx, from, v.of)
	if err == nil {
		err = v.write(data)
	}
	if err != nil {
		return fmt.Errorf("mount %s: %w", v.of, err)
	}
	return nil
}

func (v *volume) write(content map[string][]byte) error {
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return err
	}
	version, err := os.MkdirTemp(v.dir, "..version-")
	if err != nil {
		return err
	}
	for key, value := range content {
		if err := os.WriteFile(filepath.Join(version, key), value, 0o600); err != nil {
			return err
		}
	}
	data, fresh := filepath.Join(v.dir, "..data"), filepath.Join(v.dir, "..data_tmp")
	if err := os.Symlink(filepath.Base(version), fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, data); err != nil {
		return err
	}
	for key := range content {
		err := os.Symlink(filepath.Join("..data", key), filepath.Join(v.dir, key))
		if err != nil && !os.IsExist(err) {
			return err
		}
	}
	old := v.version
	v.version = version
	if old == "" {
		return nil
	}
	return os.RemoveAll(old)
}
