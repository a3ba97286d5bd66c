package locate

import (
	"path/filepath"
)

// lmStudio lists LM Studio's folder: org/name with one or several GGUF files, or
// an MLX folder. A folder with several files has one entry a file.
//
// Source: LM Studio's documentation, "Import models".
func lmStudio(e Env) []Model {
	if e.Home == "" {
		return nil
	}
	var all []Model
	for _, root := range []string{filepath.Join(e.Home, ".lmstudio", "models"), filepath.Join(e.Home, ".cache", "lm-studio", "models")} {
		folders, _ := filepath.Glob(filepath.Join(root, "*", "*"))
		for _, folder := range folders {
			all = append(all, lmStudioModels(folder)...)
		}
	}
	return all
}

func lmStudioModels(folder string) []Model {
	name := filepath.Base(filepath.Dir(folder)) + "/" + filepath.Base(folder)
	files, _ := filepath.Glob(filepath.Join(folder, "*.gguf"))
	switch {
	case len(files) == 1:
		return []Model{{Name: name, Store: "LM Studio", Path: files[0]}}
	case len(files) == 0 && isFolder(folder):
		return []Model{{Name: name, Store: "LM Studio", Path: folder}}
	}
	var all []Model
	for _, f := range files {
		all = append(all, Model{Name: name + "/" + filepath.Base(f), Store: "LM Studio", Path: f})
	}
	return all
}
