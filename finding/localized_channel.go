package finding

// LocalizedChannel names heads whose leading channels hang on few keys.
var LocalizedChannel = &Rule{
	Code: "localized-channel", Severity: Warn,
	Doc: Doc{
		Summary: "The leading channels of the energy field sit on a few keys: T·IPR is five times that of random directions.",
		Means: "What this head compares is decided by single tokens, often a sink or a separator, rather than by " +
			"directions that many tokens share. It is common; only when nearly all leading channels hang on single tokens is it a warning.",
		Do: "See which tokens they are with `eigenhead head MODEL L3H5`. Quantization and key eviction must treat those keys with care.",
	},
	DependsOn: []*Rule{NonFinite},
	Check:     checkLocalizedChannel,
}

func checkLocalizedChannel(in *Input) []Finding {
	var found []Finding
	limit := in.Thresholds.LocalizedChannel
	for _, h := range headsOf(in.Table) {
		const name = "channel.key_ipr"
		v, ok := h.measures[name]
		if !ok || v.Null == nil || !unlikely(v, limit.Z) {
			continue
		}
		threshold := limit.Ratio * v.Null.Mean
		extreme := max(threshold, limit.Extreme*float64(in.Model.Tokens))
		switch {
		case v.Value > extreme:
			found = append(found, h.finding(Warn, name, "has nearly every leading channel on a single key", extreme))
		case v.Value > threshold:
			found = append(found, h.finding(Info, name, "has channels that hang on few keys", threshold))
		}
	}
	return found
}
