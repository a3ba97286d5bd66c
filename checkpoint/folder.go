package checkpoint

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/internal/mmap"
	"github.com/eigenhead/eigenhead/internal/safetensors"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

const indexName = "model.safetensors.index.json"

// maxSmall bounds the files that are read whole: the largest tokenizer.json in
// use has about 35 MB (chosen, not derived).
const maxSmall = 256 << 20

// folder is where a checkpoint's files are: on disk, or in an fs.FS.
type folder interface {
	open(name string) (*mmap.Map, error)
	read(name string) ([]byte, error)
	list() ([]string, error) // base names of regular files, sorted
	path(name string) string // as the user would write it
}

// locate splits a path into its folder and, unless it is one, the file in it.
func locate(p string) (folder, string, error) {
	info, err := os.Stat(p)
	if err != nil {
		return nil, "", plain(p, err)
	}
	if info.IsDir() {
		return diskFolder{p}, "", nil
	}
	return diskFolder{filepath.Dir(p)}, filepath.Base(p), nil
}

type diskFolder struct{ dir string }

func (d diskFolder) path(name string) string             { return filepath.Join(d.dir, name) }
func (d diskFolder) open(name string) (*mmap.Map, error) { return mmap.Open(d.path(name)) }
func (d diskFolder) list() ([]string, error)             { return files(os.ReadDir(d.dir)) }

func (d diskFolder) read(name string) ([]byte, error) {
	info, err := os.Stat(d.path(name))
	if err != nil {
		return nil, plain(d.path(name), err)
	}
	if info.Size() > maxSmall {
		return nil, tooLarge(d.path(name), info.Size())
	}
	data, err := os.ReadFile(d.path(name))
	return data, plain(d.path(name), err)
}

type fsFolder struct {
	fsys fs.FS
	dir  string
}

func (f fsFolder) path(name string) string { return path.Join(f.dir, name) }
func (f fsFolder) list() ([]string, error) { return files(fs.ReadDir(f.fsys, f.dir)) }

func (f fsFolder) read(name string) ([]byte, error) {
	data, err := fs.ReadFile(f.fsys, f.path(name))
	return data, plain(f.path(name), err)
}

func (f fsFolder) open(name string) (*mmap.Map, error) {
	data, err := f.read(name)
	return mmap.Of(data), err
}

// plain gives err without the system call's name but with the path; nil stays.
func plain(p string, err error) error {
	if e, ok := err.(*fs.PathError); ok {
		err = e.Err
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", p, err)
}

func tooLarge(p string, size int64) error {
	return &xerr.Unsupported{File: p, What: "size", Found: fmt.Sprintf("%d bytes", size), Want: fmt.Sprintf("at most %d", maxSmall)}
}

func files(entries []fs.DirEntry, err error) ([]string, error) {
	var names []string
	for _, e := range entries {
		if !e.IsDir() { // a symbolic link may lead to a file: caches are built so
			names = append(names, e.Name())
		}
	}
	return names, err // ReadDir sorts
}

// choose names the file of the folder to open: the one file before the index,
// as Hugging Face loaders do, then a lone .safetensors or .gguf, or one split GGUF.
func choose(p string, dir folder) (string, error) {
	names, err := dir.list()
	if err != nil {
		return "", plain(p, err)
	}
	for _, name := range []string{"model.safetensors", indexName} {
		if slices.Contains(names, name) {
			return name, nil
		}
	}
	for _, ext := range []string{".safetensors", ".gguf"} {
		if found := withExt(names, ext); len(found) == 1 {
			return found[0], nil
		} else if isSplit(found) {
			return found[0], nil // its siblings follow from it
		} else if len(found) > 1 {
			return "", &xerr.Unsupported{File: p, What: "folder", Found: fmt.Sprintf("%d %s files (%s)", len(found), ext, enumerate(found)),
				Want: "one of them, or " + indexName, Hint: "name the file that you mean"}
		}
	}
	for _, name := range names {
		if isPickle(name) {
			return "", safetensors.Pickle(dir.path(name))
		}
	}
	return "", &xerr.Unsupported{File: p, What: "folder", Found: "no checkpoint in it",
		Want: "model.safetensors, " + indexName + ", or one .safetensors or .gguf file",
		Hint: "give the folder that holds config.json and the weights, or a .gguf file"}
}

func withExt(names []string, ext string) []string {
	var found []string
	for _, n := range names {
		if strings.EqualFold(filepath.Ext(n), ext) && !strings.HasPrefix(n, ".") {
			found = append(found, n)
		}
	}
	return found
}

func enumerate(names []string) string {
	const most = 4
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

func isPickle(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".bin", ".pt", ".pth", ".ckpt", ".pkl":
		return true
	}
	return false
}

var shardForm = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.(safetensors|gguf)$`)

// refuseShard refuses one of several shards: opened alone it lacks tensors.
func refuseShard(name, file string) error {
	m := shardForm.FindStringSubmatch(file)
	if m == nil || m[3] == "00001" {
		return nil
	}
	return &xerr.Unsupported{File: name, What: "file", Found: fmt.Sprintf("shard %s of %s", m[2], m[3]), Want: "the whole model",
		Hint: "give the folder, which has " + indexName}
}
