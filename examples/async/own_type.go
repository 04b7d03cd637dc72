// A custom primitive to wait for: a turnstile that admits its waiters in the order of their numbers.
package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

type turn struct {
	number int
	passes chan struct{}
}

type turnstile struct {
	lock    sync.Mutex
	waiting []turn
	next    int
}

func (t *turnstile) enlist(number int) (turn, bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	mine := turn{number, make(chan struct{})}
	if number == t.next {
		return mine, true
	}
	t.waiting = append(t.waiting, mine)
	return mine, false
}

// Removes a turn from the waiters.
func (t *turnstile) withdraw(number int) bool {
	for i, other := range t.waiting {
		if other.number == number {
			t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
			return true
		}
	}
	return false
}

func (t *turnstile) wait(ctx context.Context, number int) error {
	mine, ready := t.enlist(number)
	if ready {
		return nil
	}
	select {
	case <-mine.passes:
		return nil
	case <-ctx.Done():
		t.lock.Lock()
		defer t.lock.Unlock()
		if !t.withdraw(number) {
			return nil // already admitted
		}
		return ctx.Err()
	}
}

func (t *turnstile) pass() {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.next++
	for _, other := range t.waiting {
		if other.number == t.next {
			t.withdraw(other.number)
			close(other.passes)
			return
		}
	}
}

func visitor(ctx context.Context, t *turnstile, number int) {
	time.Sleep(time.Duration(number*7%5) * 100 * time.Microsecond)
	if t.wait(ctx, number) != nil {
		return
	}
	fmt.Printf("%d ", number)
	t.pass()
}

func main() {
	var t turnstile
	var wait sync.WaitGroup
	for i := 9; i >= 0; i-- {
		wait.Add(1)
		go func(number int) {
			defer wait.Done()
			visitor(context.Background(), &t, number)
		}(i)
	}
	wait.Wait()
	fmt.Println("closed")
}
