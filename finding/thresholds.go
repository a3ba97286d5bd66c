package finding

// Thresholds are the numbers that rules compare with, read from one TOML file.
type Thresholds struct{}
