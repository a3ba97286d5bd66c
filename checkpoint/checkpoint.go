// Package checkpoint opens model files, safetensors (one file, or shards behind
// an index) and GGUF, through mmap, and hands out names, shapes, types and,
// when asked, numbers as float32. It knows nothing of model families.
package checkpoint
