package io.pelton

import io.pelton.kotlin.download
import io.pelton.kotlin.progress
import java.io.File
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.onEach
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows
import org.junit.jupiter.api.io.TempDir

internal class DownloadsTest {
    @TempDir
    lateinit var out: File

    private val origin = Origin()
    private val client = PeltonClient.builder().proxy("").build()
    private val bytes = Origin.content(1_000_000, 1)

    @AfterEach
    fun stop() {
        client.close()
        origin.close()
    }

    @Test
    fun `download suspends until everything is there`() = soon {
        origin.file("/f", bytes)
        val report = client.download(request("/f"))
        assertEquals(1, report.filesDone())
        assertArrayEquals(bytes, File(out, "f").readBytes())
    }

    @Test
    fun `a failure is thrown`() = soon {
        val failure = runCatching { client.download(request("/gone")) }.exceptionOrNull()
        assertEquals(PeltonException.NOT_FOUND, (failure as PeltonException).code())
    }

    @Test
    fun `cancelling the coroutine cancels the download`() = soon {
        val item = origin.file("/f", bytes).gateAt(bytes.size / 2L)
        val told = CompletableDeferred<Progress>()
        val running = async(Dispatchers.IO) { client.download(request("/f")) { told.complete(it) } }
        item.awaitGate()
        assertTrue(told.await().files() == 1L)
        running.cancel()
        assertThrows<CancellationException> { runBlocking { running.await() } }
        item.open()
        val report = client.download(request("/f"))
        assertEquals(1, report.filesDone())
    }

    @Test
    fun `progress flows to the end`() = soon {
        val item = origin.file("/f", bytes).gateAt(bytes.size / 2L)
        val seen = client.progress(request("/f")).onEach { item.open() }.toList()
        assertTrue(seen.isNotEmpty())
        assertTrue(seen.zipWithNext().all { (before, after) -> before.bytes() <= after.bytes() })
        assertArrayEquals(bytes, File(out, "f").readBytes())
    }

    @Test
    fun `a flow fails with the download`() = soon {
        val failure = runCatching { client.progress(request("/gone")).toList() }.exceptionOrNull()
        assertEquals(PeltonException.NOT_FOUND, (failure as PeltonException).code())
    }

    @Test
    fun `a flow that is left cancels the download`() = soon {
        val item = origin.file("/f", bytes).gateAt(bytes.size / 2L)
        client.progress(request("/f")).first()
        item.open()
        // A second download of the same file could not go on beside the first.
        assertEquals(1, client.download(request("/f")).filesDone())
    }

    private fun soon(test: suspend kotlinx.coroutines.CoroutineScope.() -> Unit) =
        runBlocking { withTimeout(30_000) { test() } }

    private fun request(path: String): Request =
        Request.builder().url(origin.url(path)).into(out).build()
}
