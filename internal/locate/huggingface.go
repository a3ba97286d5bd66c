package locate

import (
	"os"
	"path/filepath"
	"strings"
)

// huggingFace lists the cache of huggingface_hub: models--org--name/snapshots/HASH,
// where refs/main says which hash is meant.
//
// Source: huggingface_hub, "Understand caching".
func huggingFace(e Env) []Model {
	hub := e.Getenv("HF_HUB_CACHE")
	if hub == "" {
		home := e.Getenv("HF_HOME")
		if home == "" {
			home = filepath.Join(cacheHome(e), "huggingface")
		}
		hub = filepath.Join(home, "hub")
	}
	var all []Model
	folders, _ := filepath.Glob(filepath.Join(hub, "models--*"))
	for _, folder := range folders {
		name := strings.ReplaceAll(strings.TrimPrefix(filepath.Base(folder), "models--"), "--", "/")
		if path := snapshot(folder); path != "" {
			all = append(all, Model{Name: name, Store: "Hugging Face", Path: path})
		}
	}
	return all
}

func cacheHome(e Env) string {
	if dir := e.Getenv("XDG_CACHE_HOME"); dir != "" {
		return dir
	}
	return filepath.Join(e.Home, ".cache")
}

// snapshot returns the folder of the main revision, or of the only one there is.
func snapshot(folder string) string {
	if hash, err := os.ReadFile(filepath.Join(folder, "refs", "main")); err == nil {
		path := filepath.Join(folder, "snapshots", filepath.Base(strings.TrimSpace(string(hash))))
		if isFolder(path) {
			return path
		}
	}
	found, _ := filepath.Glob(filepath.Join(folder, "snapshots", "*"))
	if len(found) == 1 && isFolder(found[0]) {
		return found[0]
	}
	return ""
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
