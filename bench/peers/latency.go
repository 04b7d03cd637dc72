// How late a timer is, and how long a goroutine that was woken by a thread outside waits, with other work: see latency.c.
package main

import (
	"fmt"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

const (
	workers  = 2
	samples  = 200
	interval = 5 * time.Millisecond
	turn     = time.Millisecond
)

var over atomic.Bool

var loads = []struct {
	name string
	each int
	body func()
}{
	{"idle", 0, nil},
	{"ready", 1, func() {
		full := make(chan int, 2)
		full <- 1
		for !over.Load() {
			full <- <-full
		}
	}},
	{"turns", 4, func() {
		for !over.Load() {
			for begun := time.Now(); time.Since(begun) < turn; {
			}
			runtime.Gosched()
		}
	}},
	{"yielders", 256, func() {
		for !over.Load() {
			runtime.Gosched()
		}
	}},
}

func timer() []float64 {
	var late []float64
	for i := 0; i < samples; i++ {
		until := time.Now().Add(interval)
		time.Sleep(interval)
		late = append(late, float64(time.Since(until).Nanoseconds())/1e3)
	}
	return late
}

// (Go has no thread outside: the poster is a goroutine that is locked to a thread of its own.)
func post() []float64 {
	var late []float64
	posts := make(chan time.Time)
	go func() {
		runtime.LockOSThread()
		for i := 0; i < samples; i++ {
			time.Sleep(interval)
			posts <- time.Now()
		}
	}()
	for i := 0; i < samples; i++ {
		posted := <-posts
		late = append(late, float64(time.Since(posted).Nanoseconds())/1e3)
	}
	return late
}

func show(load, of string, late []float64) {
	sort.Float64s(late)
	at := func(name string, i int) {
		fmt.Printf("{\"bench\": \"latency\", \"subject\": \"go\", \"value\": %.2f, \"unit\": \"us\", "+
			"\"params\": {\"load\": \"%s\", \"of\": \"%s\", \"at\": \"%s\"}}\n", late[i], load, of, name)
	}
	at("p50", samples/2)
	at("p99", samples*99/100)
	at("max", samples-1)
}

func main() {
	runtime.GOMAXPROCS(workers)
	for _, load := range loads {
		for _, of := range []string{"timer", "post"} {
			var ended sync.WaitGroup
			over.Store(false)
			for i := 0; i < load.each*workers; i++ {
				ended.Add(1)
				go func() {
					load.body()
					ended.Done()
				}()
			}
			measure := timer
			if of == "post" {
				measure = post
			}
			late := measure()
			over.Store(true)
			ended.Wait()
			show(load.name, of, late)
		}
	}
}
