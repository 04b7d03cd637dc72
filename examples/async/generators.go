// The words of a text that arrives in pieces, the primes, and the nodes of a tree, with goroutines.
package main

import (
	"context"
	"fmt"
	"time"
	"unicode"
)

// Sends a value to the reader, unless the reader has been cancelled.
func yield[T any](ctx context.Context, out chan<- T, value T) bool {
	select {
	case out <- value:
		return true
	case <-ctx.Done():
		return false
	}
}

// Yields one character at a time; each piece has to be waited for.
func characters(ctx context.Context, pieces []string) <-chan rune {
	out := make(chan rune)
	go func() {
		defer close(out)
		for _, piece := range pieces {
			time.Sleep(time.Microsecond)
			for _, c := range piece {
				if !yield(ctx, out, c) {
					return
				}
			}
		}
	}()
	return out
}

func words(ctx context.Context, pieces []string) <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		word := ""
		for c := range characters(ctx, pieces) {
			if !unicode.IsSpace(c) {
				word += string(c)
			} else if word != "" {
				if !yield(ctx, out, word) {
					return
				}
				word = ""
			}
		}
		if word != "" {
			yield(ctx, out, word)
		}
	}()
	return out
}

func primes(ctx context.Context) <-chan int {
	out := make(chan int)
	go func() {
		defer close(out)
		var found []int
	next:
		for n := 2; ; n++ {
			for _, p := range found {
				if n%p == 0 {
					continue next
				}
			}
			found = append(found, n)
			if !yield(ctx, out, n) {
				return
			}
		}
	}()
	return out
}

type node struct {
	left, right *node
	value       int
}

func walk(ctx context.Context, n *node, out chan<- int) bool {
	if n == nil {
		return true
	}
	return walk(ctx, n.left, out) && yield(ctx, out, n.value) && walk(ctx, n.right, out)
}

func inOrder(ctx context.Context, n *node) <-chan int {
	out := make(chan int)
	go func() {
		defer close(out)
		walk(ctx, n, out)
	}()
	return out
}

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for word := range words(ctx, []string{"to b", "e or not ", "to be"}) {
		fmt.Printf("%s.", word)
	}
	for prime := range primes(ctx) {
		if prime > 20 {
			break
		}
		fmt.Printf(" %d", prime)
	}
	top := &node{&node{value: 1}, &node{value: 3}, 2}
	for value := range inOrder(ctx, top) {
		fmt.Printf(" <%d>", value)
	}
	fmt.Println()
}
