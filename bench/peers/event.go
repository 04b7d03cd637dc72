// Ping-pong of two goroutines over two unbuffered channels: nanoseconds per round trip.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"time"
)

const (
	roundTrips = 300000
	rounds     = 11
)

func main() {
	threads, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	runtime.GOMAXPROCS(threads)

	var each []float64
	for round := -1; round < rounds; round++ {
		ping, pong := make(chan int), make(chan int)
		begun := time.Now()
		go func() {
			for turn := range ping {
				pong <- turn
			}
		}()
		for turn := 0; turn < roundTrips; turn++ {
			ping <- turn
			if <-pong != turn {
				panic("a turn was lost")
			}
		}
		close(ping)
		if round >= 0 {
			each = append(each, float64(time.Since(begun).Nanoseconds())/roundTrips)
		}
	}
	sort.Float64s(each)
	fmt.Printf("{\"bench\": \"event\", \"subject\": \"go-channel\", \"value\": %.2f, \"unit\": \"ns/op\", "+
		"\"params\": {\"threads\": %d, \"by\": \"channel\"}}\n", each[rounds/2], threads)
}
