package checkpoint

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/internal/safetensors"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// openShards opens every shard that the index names. A missing file is found
// before any is opened: an interrupted download is the usual cause.
func (c *Checkpoint) openShards() error {
	where := c.dir.path(indexName)
	raw, err := c.dir.read(indexName)
	if err != nil {
		return err
	}
	shardOf, err := safetensors.ParseIndex(where, raw)
	if err != nil {
		return err
	}
	c.index = raw
	shards := slices.Compact(slices.Sorted(maps.Values(shardOf)))
	if err := c.checkShards(where, shards); err != nil {
		return err
	}
	for _, shard := range shards {
		m, err := c.dir.open(shard)
		if err != nil {
			return err
		}
		c.parts = append(c.parts, &part{name: shard, m: m})
		if err := c.addSafetensors(c.dir.path(shard)); err != nil {
			return err
		}
	}
	for _, tensor := range slices.Sorted(maps.Keys(shardOf)) {
		t, ok := c.tensors[tensor]
		if !ok || t.part.name != shardOf[tensor] {
			return &xerr.Format{File: fmt.Sprintf("%s: tensor %q", c.dir.path(shardOf[tensor]), tensor), What: "header",
				Found: "no such tensor", Want: "it there, as " + indexName + " says", Hint: "index and shards may come from different models"}
		}
	}
	return nil
}

func (c *Checkpoint) checkShards(where string, shards []string) error {
	names, err := c.dir.list()
	if err != nil {
		return plain(c.Path, err)
	}
	for _, shard := range shards {
		if shard != filepath.Base(shard) || strings.ContainsAny(shard, `/\`) {
			return &xerr.Format{File: where, What: "weight_map", Found: fmt.Sprintf("file %q", shard), Want: "the name of a file beside it"}
		}
		if !slices.Contains(names, shard) {
			return &xerr.Format{File: where, What: "weight_map", Found: fmt.Sprintf("file %q, which is absent", shard),
				Want: fmt.Sprintf("all %d shards beside it", len(shards)), Hint: "the download may have been interrupted: fetch the missing file"}
		}
	}
	return nil
}
