// Numbers through a channel from one goroutine to another, of some capacities: nanoseconds each.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"time"
)

const rounds = 11

func transfer(capacity int, items uint64) {
	channel := make(chan uint64, capacity)
	done := make(chan uint64)
	go func() {
		for number := uint64(0); number < items; number++ {
			channel <- number
		}
		close(channel)
	}()
	go func() {
		sum := uint64(0)
		for number := range channel {
			sum += number
		}
		done <- sum
	}()
	if <-done != items*(items-1)/2 {
		panic("the receiver's sum is wrong")
	}
}

func main() {
	threads, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	runtime.GOMAXPROCS(threads)

	for _, capacity := range []int{0, 1, 16, 128, 1024} {
		items := uint64(1000000)
		if capacity < 2 {
			items = 300000
		}
		var each []float64
		for round := -1; round < rounds; round++ {
			begun := time.Now()
			transfer(capacity, items)
			if round >= 0 {
				each = append(each, float64(time.Since(begun).Nanoseconds())/float64(items))
			}
		}
		sort.Float64s(each)
		fmt.Printf("{\"bench\": \"channel\", \"subject\": \"go\", \"value\": %.2f, \"unit\": \"ns/op\", "+
			"\"params\": {\"threads\": %d, \"capacity\": %d}}\n", each[rounds/2], threads, capacity)
	}
}
