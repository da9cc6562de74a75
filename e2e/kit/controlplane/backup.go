package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Backup copies what etcd has stored, and returns a function that restores the copy. For both, the API server and etcd are stopped
// and started again. After a restore the resourceVersions begin again at that of the copy: components that watch go on as they can.
func (cp *ControlPlane) Backup(ctx context.Context) (restore func(context.Context) error, err error) {
	stored := cp.layout.file("etcd")
	backup, err := os.MkdirTemp(cp.layout.dir, "backup-")
	if err != nil {
		return nil, fmt.Errorf("back up etcd: %w", err)
	}
	backup = filepath.Join(backup, "etcd")
	err = cp.withoutStorage(ctx, func() error { return os.CopyFS(backup, os.DirFS(stored)) })
	if err != nil {
		return nil, fmt.Errorf("back up etcd: %w", err)
	}
	return func(ctx context.Context) error {
		err := cp.withoutStorage(ctx, func() error {
			if err := os.RemoveAll(stored); err != nil {
				return err
			}
			return os.CopyFS(stored, os.DirFS(backup))
		})
		if err != nil {
			return fmt.Errorf("restore etcd: %w", err)
		}
		return nil
	}, nil
}

// withoutStorage calls f while the API server and etcd do not run.
func (cp *ControlPlane) withoutStorage(ctx context.Context, f func() error) error {
	api, etcd := cp.Component(APIServer), cp.Component(Etcd)
	for _, process := range []*Process{api, etcd} {
		if err := process.Stop(ctx); err != nil {
			return err
		}
	}
	if err := f(); err != nil {
		return err
	}
	if err := etcd.Start(ctx); err != nil {
		return err
	}
	return api.Start(ctx)
}
