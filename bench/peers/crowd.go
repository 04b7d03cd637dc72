// The cost of an operation in a crowd of waiting goroutines, on one thread; the figures of bench/crowd.c for which Go
// has an equivalent. The event is the closing of a channel.
package main

import (
	"fmt"
	"math/rand"
	"runtime"
	"sort"
	"sync"
	"time"
)

const rounds = 5

// The number of operations for which a round takes a moment.
func timesFor(nanoseconds float64) int {
	times := int(5e7 / nanoseconds)
	if times < 20 {
		return 20
	}
	if times > 200000 {
		return 200000
	}
	return times
}

func cancelSome(count, times int) float64 {
	event := make(chan struct{})
	stops := make([]chan struct{}, count)
	ended := 0
	begin := func(i int) {
		stop := make(chan struct{})
		stops[i] = stop
		go func() {
			select {
			case <-event:
			case <-stop:
				ended++
			}
		}()
	}
	for i := range stops {
		begin(i)
	}
	runtime.Gosched()
	begun := time.Now()
	for n := 0; n < times; n++ {
		i := rand.Intn(count)
		close(stops[i])
		begin(i)
		runtime.Gosched()
	}
	for ended != times { // (the scheduler may have interrupted one)
		runtime.Gosched()
	}
	took := float64(time.Since(begun).Nanoseconds())
	close(event)
	return took / float64(times)
}

func selectMessages(count, times int) float64 {
	shutdown := make(chan struct{})
	messages := make([]chan int, count)
	received := 0
	var ended sync.WaitGroup
	ended.Add(count)
	for i := range messages {
		own := make(chan int, 1)
		messages[i] = own
		go func() {
			for {
				select {
				case <-own:
					received++
				case <-shutdown:
					ended.Done()
					return
				}
			}
		}()
	}
	runtime.Gosched()
	begun := time.Now()
	for n := 0; n < times; n++ {
		messages[n%count] <- 1
		runtime.Gosched()
	}
	for received != times {
		runtime.Gosched()
	}
	took := float64(time.Since(begun).Nanoseconds())
	close(shutdown)
	ended.Wait()
	return took / float64(times)
}

func timeOutAll(count, _ int) float64 {
	event := make(chan struct{})
	deadline := time.Now().Add(2*time.Millisecond + time.Duration(count)*5*time.Microsecond)
	var ended sync.WaitGroup
	ended.Add(count)
	for i := 0; i < count; i++ {
		go func() {
			timer := time.NewTimer(time.Until(deadline))
			select {
			case <-event:
			case <-timer.C:
			}
			ended.Done()
		}()
	}
	for time.Until(deadline) > 0 {
		runtime.Gosched()
	}
	ended.Wait()
	return float64(time.Since(deadline).Nanoseconds()) / float64(count)
}

func measure(of string, count int, run func(count, times int) float64) {
	first := run(count, 20)
	var each []float64
	for round := 0; round < rounds; round++ {
		each = append(each, run(count, timesFor(first)))
		runtime.Gosched()
	}
	sort.Float64s(each)
	fmt.Printf("{\"bench\": \"crowd\", \"subject\": \"go\", \"value\": %.2f, \"unit\": \"ns/op\", "+
		"\"params\": {\"of\": \"%s\", \"on\": \"event\", \"waiters\": %d}}\n", each[rounds/2], of, count)
}

func main() {
	runtime.GOMAXPROCS(1)
	for _, count := range []int{10, 1000, 100000} {
		measure("cancelled", count, cancelSome)
		measure("timeout", count, timeOutAll)
		measure("select", count, selectMessages)
	}
}
