//go:build !amd64 && !arm64

package kernel

// available lists the sets that run here, fastest first.
func available() []*set { return []*set{generic} }
