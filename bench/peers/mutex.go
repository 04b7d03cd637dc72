// sync.Mutex: a goroutine that locks and unlocks it, and four that contend for it on two threads.
// Arguments: uncontended; or contended, and the steps that each does between two locks.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	times   = 5000000
	parties = 4
	rounds  = 11
)

var sink uint64

func median(values []float64) float64 {
	sort.Float64s(values)
	return values[len(values)/2]
}

func figure(value float64, unit, params string) {
	fmt.Printf("{\"bench\": \"mutex\", \"subject\": \"go-mutex\", \"value\": %.2f, \"unit\": \"%s\", \"params\": {%s}}\n",
		value, unit, params)
}

func uncontended() {
	runtime.GOMAXPROCS(1)
	var nanoseconds []float64
	for round := -1; round < rounds; round++ {
		var mutex sync.Mutex
		begun := time.Now()
		for i := 0; i < times; i++ {
			mutex.Lock()
			sink++
			mutex.Unlock()
		}
		if round >= 0 {
			nanoseconds = append(nanoseconds, float64(time.Since(begun).Nanoseconds())/times)
		}
	}
	figure(median(nanoseconds), "ns/op", "\"of\": \"uncontended\"")
}

func work(steps int) uint64 {
	number := uint64(88172645463325252)
	for i := 0; i < steps; i++ {
		number ^= number << 13
		number ^= number >> 7
		number ^= number << 17
	}
	return number
}

func contended(outside int) {
	runtime.GOMAXPROCS(2)
	var locksEach, handoversEach []float64
	for round := -1; round < rounds; round++ {
		var mutex sync.Mutex
		var done sync.WaitGroup
		locks, handovers, last := 0, 0, 0
		over := uint32(0)
		results := make([]uint64, parties*8)
		done.Add(parties)
		begun := time.Now()
		for who := 0; who < parties; who++ {
			go func(who int) {
				sum := uint64(0)
				for atomic.LoadUint32(&over) == 0 {
					mutex.Lock()
					if last != who {
						handovers++
						last = who
					}
					locks++
					mutex.Unlock()
					sum += work(outside)
				}
				results[who*8] = sum
				done.Done()
			}(who)
		}
		time.Sleep(100 * time.Millisecond)
		atomic.StoreUint32(&over, 1)
		done.Wait()
		seconds := time.Since(begun).Seconds()
		sink += results[0]
		if round >= 0 {
			locksEach = append(locksEach, float64(locks)/seconds)
			handoversEach = append(handoversEach, float64(handovers)/seconds)
		}
	}
	params := fmt.Sprintf("\"of\": \"contended\", \"parties\": %d, \"threads\": 2, \"outside\": %d", parties, outside)
	figure(median(locksEach), "locks/s", params)
	figure(median(handoversEach), "handovers/s", params)
}

func main() {
	if os.Args[1] == "uncontended" {
		uncontended()
		return
	}
	outside, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	contended(outside)
}
