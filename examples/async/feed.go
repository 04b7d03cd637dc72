// A market's ticks pass through channels: one stage checks and prices them, then two readers each see all of them, in order.
package main

import (
	"fmt"
	"sync"
)

const (
	size      = 64
	tickCount = 100000
)

type tick struct {
	price, quantity, value int64
}

func publish(out chan<- *tick) {
	defer close(out)
	for n := int64(0); n < tickCount; n++ {
		out <- &tick{100 + n%7, 1 + n%3, 0}
	}
}

// Each reader needs its own channel, since a channel delivers a tick to only one receiver.
func price(in <-chan *tick, outs ...chan<- *tick) {
	for t := range in {
		t.value = t.price * t.quantity
		for _, out := range outs {
			out <- t
		}
	}
	for _, out := range outs {
		close(out)
	}
}

func sum(in <-chan *tick) string {
	total := int64(0)
	for t := range in {
		total += t.value
	}
	return fmt.Sprintf("turnover %d", total)
}

func watch(in <-chan *tick) string {
	highest, count := int64(0), 0
	for t := range in {
		if t.price > highest {
			highest = t.price
		}
		count++
	}
	return fmt.Sprintf("%d ticks, highest %d", count, highest)
}

func main() {
	published := make(chan *tick, size)
	summed, watched := make(chan *tick, size), make(chan *tick, size)
	var wait sync.WaitGroup
	var turnover, seen string
	wait.Add(2)
	go publish(published)
	go price(published, summed, watched)
	go func() {
		defer wait.Done()
		turnover = sum(summed)
	}()
	go func() {
		defer wait.Done()
		seen = watch(watched)
	}()
	wait.Wait()
	fmt.Println(turnover)
	fmt.Println(seen)
}
