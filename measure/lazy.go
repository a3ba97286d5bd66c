package measure

import "sync"

// lazy is a value that the first caller computes and all later ones share.
type lazy[T any] struct {
	once  sync.Once
	value T
	err   error
}

func (l *lazy[T]) get(f func() (T, error)) (T, error) {
	l.once.Do(func() { l.value, l.err = f() })
	return l.value, l.err
}
