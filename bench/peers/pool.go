// The cost of goroutines: nanoseconds each. hop: runtime.Gosched; spawn: a thousand short ones from one, and a wait group.
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

const rounds = 11

func hop(tasks, operations int) {
	var ended sync.WaitGroup
	ended.Add(tasks)
	for i := 0; i < tasks; i++ {
		go func() {
			for left := operations / tasks; left > 0; left-- {
				runtime.Gosched()
			}
			ended.Done()
		}()
	}
	ended.Wait()
}

func spawn(tasks, operations int) {
	numbers := make([]int, tasks)
	for left := operations / tasks; left > 0; left-- {
		var ended sync.WaitGroup
		ended.Add(tasks)
		for i := range numbers {
			number := &numbers[i]
			go func() {
				*number++
				ended.Done()
			}()
		}
		ended.Wait()
	}
}

func measure(of string, threads, tasks, operations int, run func(tasks, operations int)) {
	var each []float64
	for round := -1; round < rounds; round++ {
		begun := time.Now()
		run(tasks, operations)
		if round >= 0 {
			each = append(each, float64(time.Since(begun).Nanoseconds())/float64(operations))
		}
	}
	sort.Float64s(each)
	fmt.Printf("{\"bench\": \"pool\", \"subject\": \"go\", \"value\": %.2f, \"unit\": \"ns/op\", "+
		"\"params\": {\"of\": \"%s\", \"threads\": %d, \"tasks\": %d}}\n", each[rounds/2], of, threads, tasks)
}

func main() {
	threads, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	runtime.GOMAXPROCS(threads)
	if threads == 1 {
		measure("hop", threads, 1, 1000000, hop)
	}
	measure("hop", threads, 1000, 1000000, hop)
	measure("spawn", threads, 1000, 500000, spawn)
}
