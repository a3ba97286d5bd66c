package checkpoint

// SafetensorsTypes returns the element types of safetensors that Rows and
// Float32s read; others are listed and refused by name when read.
func SafetensorsTypes() []string {
	return []string{"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"}
}

// GGUFTypes returns the tensor types of GGUF that Rows and Float32s read, in the
// order of their numbers in the format.
func GGUFTypes() []string {
	var names []string
	for _, k := range kinds {
		if k.decode != nil {
			names = append(names, k.name)
		}
	}
	return names
}
