import com.lmax.disruptor.BatchEventProcessor;
import com.lmax.disruptor.BlockingWaitStrategy;
import com.lmax.disruptor.BusySpinWaitStrategy;
import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.Sequence;
import com.lmax.disruptor.WaitStrategy;
import com.lmax.disruptor.YieldingWaitStrategy;

import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;

/**
 * Producers and consumers over the Disruptor, a thread each; one line of JSON.
 * Arguments: ring, the topology (1-1, 1-3, 3-1 or 1-2-1), the wait strategy, the batch, the size of the ring:
 * items a second. Or idle, the number of consumers, the wait strategy: processor time while nothing is published.
 */
public final class DisruptorRing {
    private static final int WARM_UPS = 5;
    private static final int ROUNDS = 7;
    private static final double ROUND_SECONDS = 0.2;
    private static final long FIRST_ITEMS = 1_000_000;
    private static final long MOST_ITEMS = 100_000_000;
    private static final long IDLE_MILLISECONDS = 2000;

    static final class Event {
        long value;
    }

    /** Adds up the values, and says when it has seen the last one. */
    static final class Adder implements EventHandler<Event> {
        long sum;
        long last = -1;
        CountDownLatch done;

        @Override
        public void onEvent(Event event, long sequence, boolean endOfBatch) {
            sum += event.value;
            if (sequence == last) {
                done.countDown();
            }
        }
    }

    private final int producers;
    private final int batch;
    private final RingBuffer<Event> ring;
    private final Adder[] adders;
    private final BatchEventProcessor<?>[] processors;
    private final Thread[] threads;

    /** So many consumers, and after them so many that come after all of these. */
    private DisruptorRing(int producers, int consumers, int after, String strategy, int batch, int size) {
        this.producers = producers;
        this.batch = batch;
        ring = producers == 1 ? RingBuffer.createSingleProducer(Event::new, size, strategy(strategy))
                              : RingBuffer.createMultiProducer(Event::new, size, strategy(strategy));
        adders = new Adder[consumers + after];
        processors = new BatchEventProcessor<?>[consumers + after];
        threads = new Thread[consumers + after];
        Sequence[] first = new Sequence[consumers];
        Sequence[] last = new Sequence[after == 0 ? consumers : after];
        for (int i = 0; i < processors.length; i++) {
            boolean isFirst = i < consumers;
            adders[i] = new Adder();
            processors[i] = new BatchEventProcessor<>(
                ring, isFirst ? ring.newBarrier() : ring.newBarrier(first), adders[i]);
            if (isFirst) {
                first[i] = processors[i].getSequence();
            }
            if (!isFirst || after == 0) {
                last[isFirst ? i : i - consumers] = processors[i].getSequence();
            }
        }
        ring.addGatingSequences(last);
        for (int i = 0; i < processors.length; i++) {
            threads[i] = new Thread(processors[i], "consumer");
            threads[i].setDaemon(true);
            threads[i].start();
        }
    }

    private void publishOne(long value) {
        long seq = ring.next();
        ring.get(seq).value = value;
        ring.publish(seq);
    }

    private void publishBatch(long value) {
        long hi = ring.next(batch);
        long lo = hi - batch + 1;
        for (long seq = lo; seq <= hi; seq++) {
            ring.get(seq).value = value++;
        }
        ring.publish(lo, hi);
    }

    /** Sends 0 to items - 1. */
    private void produce(long items) {
        if (batch == 1) {
            for (long i = 0; i < items; i++) {
                publishOne(i);
            }
        } else {
            for (long i = 0; i < items; i += batch) {
                publishBatch(i);
            }
        }
    }

    /** Each producer sends so many items (a multiple of the batch); returns the seconds it took. */
    private double round(long each) throws InterruptedException {
        CountDownLatch done = new CountDownLatch(adders.length);
        for (Adder adder : adders) {
            // The consumers see these by way of the first publish.
            adder.sum = 0;
            adder.last = ring.getCursor() + each * producers;
            adder.done = done;
        }

        long start = System.nanoTime();
        Thread[] others = new Thread[producers - 1];
        for (int i = 0; i < others.length; i++) {
            others[i] = new Thread(() -> produce(each), "producer");
            others[i].start();
        }
        produce(each);
        for (Thread other : others) {
            other.join();
        }
        done.await();
        long nanos = System.nanoTime() - start;

        for (Adder adder : adders) {
            if (adder.sum != each * (each - 1) / 2 * producers) {
                throw new IllegalStateException("a consumer's sum is wrong");
            }
        }
        return nanos / 1e9;
    }

    private long median() throws InterruptedException {
        long each = FIRST_ITEMS / producers / batch * batch;
        for (int i = 0; i < WARM_UPS; i++) {
            double seconds = round(each);
            long next = (long) (each / seconds * ROUND_SECONDS);
            each = Math.max(1, Math.min(next, MOST_ITEMS) / batch) * batch;
        }
        double[] rates = new double[ROUNDS];
        for (int i = 0; i < ROUNDS; i++) {
            rates[i] = each * producers / round(each);
        }
        System.err.println(each * producers + " items a round: " + Arrays.toString(rates));
        Arrays.sort(rates);
        return Math.round(rates[ROUNDS / 2]);
    }

    /** The processor time that is taken a second while nothing is published, in milliseconds. */
    private double idle() throws InterruptedException {
        round(FIRST_ITEMS);
        Thread.sleep(500);
        long cpu = cpuNanos();
        long start = System.nanoTime();
        Thread.sleep(IDLE_MILLISECONDS);
        return 1e3 * (cpuNanos() - cpu) / (System.nanoTime() - start);
    }

    private static long cpuNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime();
    }

    private void end() throws InterruptedException {
        for (BatchEventProcessor<?> processor : processors) {
            processor.halt();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static WaitStrategy strategy(String name) {
        switch (name) {
        case "yielding":
            return new YieldingWaitStrategy();
        case "blocking":
            return new BlockingWaitStrategy();
        case "busyspin":
            return new BusySpinWaitStrategy();
        default:
            throw new IllegalArgumentException("no such wait strategy: " + name);
        }
    }

    private static void measureRing(String topology, String strategy, int batch, int size)
        throws InterruptedException {
        if (batch > size) {
            throw new IllegalArgumentException("the batch does not fit the ring");
        }
        String[] stages = topology.split("-");
        int producers = Integer.parseInt(stages[0]);
        int consumers = Integer.parseInt(stages[1]);
        int after = stages.length > 2 ? Integer.parseInt(stages[2]) : 0;
        DisruptorRing bench = new DisruptorRing(producers, consumers, after, strategy, batch, size);
        long value = bench.median();
        bench.end();
        System.out.println("{\"bench\": \"ring\", \"subject\": \"disruptor-" + strategy
            + "\", \"value\": " + value + ", \"unit\": \"items/s\", \"params\": {\"topology\": \"" + topology
            + "\", \"threads\": " + (producers + consumers + after) + ", \"batch\": " + batch + ", \"ring\": "
            + size + "}}");
    }

    private static void measureIdle(int consumers, String strategy) throws InterruptedException {
        DisruptorRing bench = new DisruptorRing(1, consumers, 0, strategy, 1, 16384);
        double value = bench.idle();
        bench.end();
        System.out.println("{\"bench\": \"idle\", \"subject\": \"disruptor-" + strategy + "\", \"value\": "
            + String.format("%.2f", value) + ", \"unit\": \"ms/s\", \"params\": {\"consumers\": " + consumers
            + ", \"threads\": " + consumers + "}}");
    }

    public static void main(String[] args) throws InterruptedException {
        if (args[0].equals("idle")) {
            measureIdle(Integer.parseInt(args[1]), args[2]);
        } else {
            measureRing(args[1], args[2], Integer.parseInt(args[3]), Integer.parseInt(args[4]));
        }
    }
}
