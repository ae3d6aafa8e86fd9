package stream

// queue gives back its items in the order of less.
type queue[T any] struct {
	less  func(a, b T) bool
	items []T // a binary heap
}

func (q *queue[T]) empty() bool { return len(q.items) == 0 }

// first is the item that pop would return. The queue must not be empty.
func (q *queue[T]) first() T { return q.items[0] }

func (q *queue[T]) push(x T) {
	q.items = append(q.items, x)
	for i := len(q.items) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.less(q.items[i], q.items[parent]) {
			return
		}
		q.items[i], q.items[parent] = q.items[parent], q.items[i]
		i = parent
	}
}

func (q *queue[T]) pop() T {
	top, last := q.items[0], len(q.items)-1
	q.items[0] = q.items[last]
	var none T
	q.items[last] = none
	q.items = q.items[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && q.less(q.items[child+1], q.items[child]) {
			child++
		}
		if !q.less(q.items[child], q.items[i]) {
			return top
		}
		q.items[i], q.items[child] = q.items[child], q.items[i]
		i = child
	}
}

func earlier(a, b int64) bool { return a < b }
