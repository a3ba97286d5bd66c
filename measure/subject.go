package measure

import "github.com/eigenhead/eigenhead/head"

// Subject is what one measure looks at: a layer and, for measures of heads, the
// number of one of its pairs.
type Subject struct {
	Layer *head.Layer
	Index int
}
