package install_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secretVolume is a directory with the keys of a Secret, made as a kubelet makes it: each file is a link into ..data,
// which is a link to the directory of the present version. An update swaps the one link ..data, so that all files change
// at once and none of them is ever written to.
type secretVolume struct {
	secret client.ObjectKey
	dir    string
	// version is the directory that ..data leads to.
	version string
}

// refresh brings the directory to what the Secret has now.
func (v *secretVolume) refresh(ctx context.Context, read client.Reader) error {
	secret := &corev1.Secret{}
	if err := read.Get(ctx, v.secret, secret); err != nil {
		return fmt.Errorf("mount Secret %s: %w", v.secret, err)
	}
	if err := v.write(secret); err != nil {
		return fmt.Errorf("mount Secret %s: %w", v.secret, err)
	}
	return nil
}

func (v *secretVolume) write(secret *corev1.Secret) error {
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return err
	}
	version, err := os.MkdirTemp(v.dir, "..version-")
	if err != nil {
		return err
	}
	for key, value := range secret.Data {
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
	for key := range secret.Data {
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
