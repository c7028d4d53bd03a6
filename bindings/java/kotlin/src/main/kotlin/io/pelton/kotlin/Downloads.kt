package io.pelton.kotlin

import io.pelton.Download
import io.pelton.Listener
import io.pelton.PeltonClient
import io.pelton.PeltonException
import io.pelton.Progress
import io.pelton.Report
import io.pelton.Request
import kotlin.coroutines.resume
import kotlin.coroutines.resumeWithException
import kotlinx.coroutines.channels.awaitClose
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.callbackFlow
import kotlinx.coroutines.flow.conflate
import kotlinx.coroutines.suspendCancellableCoroutine

/**
 * Downloads what [request] asks for and waits for its end. Cancelling the coroutine cancels the download, and keeps
 * what another request needs to go on.
 *
 * @param onProgress is told how far the download is, at most ten times a second, at the end, and on the client's own thread
 * @throws PeltonException not every file is there
 */
public suspend fun PeltonClient.download(request: Request, onProgress: (Progress) -> Unit = {}): Report =
    suspendCancellableCoroutine { continuation ->
        val listener = object : Listener {
            override fun onProgress(download: Download, progress: Progress) = onProgress(progress)

            override fun onComplete(download: Download, report: Report) = continuation.resume(report)

            override fun onFailure(download: Download, failure: PeltonException) =
                continuation.resumeWithException(failure)
        }
        val download = enqueue(request, listener)
        continuation.invokeOnCancellation { download.cancel() }
    }

/**
 * Downloads what [request] asks for while the flow is collected, and tells how far it is. The flow ends when every
 * file is there, and fails with a [PeltonException] otherwise. A slow collector misses what is outdated.
 */
public fun PeltonClient.progress(request: Request): Flow<Progress> =
    callbackFlow {
        val listener = object : Listener {
            override fun onProgress(download: Download, progress: Progress) {
                trySend(progress)
            }

            override fun onComplete(download: Download, report: Report) {
                close()
            }

            override fun onFailure(download: Download, failure: PeltonException) {
                close(failure)
            }
        }
        val download = enqueue(request, listener)
        awaitClose { download.cancel() }
    }.conflate()
