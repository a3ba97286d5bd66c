package locate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// maxManifest bounds the manifest that is read: real ones have a few kilobytes.
const maxManifest = 1 << 20

// ollama lists Ollama's store: manifests/HOST/NAMESPACE/NAME/TAG is JSON whose
// layer of the type "model" names a blob, which is a GGUF file. The namespace
// "library" of the default host is left out of names, as Ollama does.
//
// Source: ollama, server/modelpath.go and server/manifest.go.
func ollama(e Env) []Model {
	root := e.Getenv("OLLAMA_MODELS")
	if root == "" {
		root = filepath.Join(e.Home, ".ollama", "models")
	}
	var all []Model
	manifests, _ := filepath.Glob(filepath.Join(root, "manifests", "*", "*", "*", "*"))
	for _, file := range manifests {
		blob := ollamaBlob(file)
		if blob == "" {
			continue
		}
		rel, err := filepath.Rel(filepath.Join(root, "manifests"), file)
		if err != nil {
			continue
		}
		parts := strings.Split(filepath.ToSlash(rel), "/") // host, namespace, name, tag
		name := parts[2] + ":" + parts[3]
		if parts[1] != "library" {
			name = parts[1] + "/" + name
		}
		all = append(all, Model{Name: "ollama:" + name, Store: "Ollama", Path: filepath.Join(root, "blobs", blob)})
	}
	return all
}

// ollamaBlob returns the file name of a manifest's model, or "" if there is none.
func ollamaBlob(file string) string {
	info, err := os.Stat(file)
	if err != nil || info.IsDir() || info.Size() > maxManifest {
		return ""
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	var manifest struct {
		Layers []struct{ MediaType, Digest string }
	}
	if json.Unmarshal(data, &manifest) != nil {
		return ""
	}
	for _, l := range manifest.Layers {
		if hash, ok := strings.CutPrefix(l.Digest, "sha256:"); ok && l.MediaType == "application/vnd.ollama.image.model" {
			return "sha256-" + filepath.Base(hash)
		}
	}
	return ""
}
