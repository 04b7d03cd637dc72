// A million goroutines that wait for a channel to be closed: memory for each, and the time to start them,
// until all wait, and to resume them, until all have ended.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"time"
)

const (
	goroutines = 1000000
	rounds     = 9
)

// What the heap and the stacks hold.
func inUse() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}

func median(values []float64) float64 {
	sort.Float64s(values)
	return values[len(values)/2]
}

func figure(value float64, unit, of string, threads int) {
	fmt.Printf("{\"bench\": \"memory\", \"subject\": \"go-goroutine\", \"value\": %.2f, "+
		"\"unit\": \"%s\", \"params\": {\"of\": \"%s\", \"threads\": %d}}\n",
		value, unit, of, threads)
}

func main() {
	threads, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	runtime.GOMAXPROCS(threads)

	var bytes float64
	var start, resume []float64
	for round := -1; round < rounds; round++ {
		var waiting, ended sync.WaitGroup
		ready := make(chan struct{})
		waiting.Add(goroutines)
		ended.Add(goroutines)
		var before float64
		if round < 0 {
			before = inUse()
		}

		begun := time.Now()
		for i := 0; i < goroutines; i++ {
			go func() {
				waiting.Done()
				<-ready
				ended.Done()
			}()
		}
		waiting.Wait()
		allWait := time.Since(begun)

		// The runtime keeps finished goroutines, so only the first round allocates all of them.
		if round < 0 {
			bytes = (inUse() - before) / goroutines
		}

		begun = time.Now()
		close(ready)
		ended.Wait()
		allEnded := time.Since(begun)

		if round >= 0 {
			start = append(start, float64(allWait.Nanoseconds())/goroutines)
			resume = append(resume, float64(allEnded.Nanoseconds())/goroutines)
		}
	}
	figure(bytes, "bytes", "task", threads)
	figure(median(start), "ns/op", "make", threads)
	figure(median(resume), "ns/op", "resume", threads)
}
