package collapse

// Source says where measured layers come from.
type Source struct {
	Model  string `json:"model"`
	Tokens int    `json:"tokens"`
}
