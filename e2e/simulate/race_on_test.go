//go:build race

package simulate

// thin leaves out most histories where the race detector makes each ten times as slow: without it, all are run.
const thin = 8
