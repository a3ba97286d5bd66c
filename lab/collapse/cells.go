package collapse

// Cell is one point of a result: a configuration at one size and layer, over seeds.
type Cell struct {
	Experiment    string
	Configuration string
	Config        Config
	Gamma         float64
	T, D, Layer   int
	Seeds         int
	Stats         map[string]Stat
}
