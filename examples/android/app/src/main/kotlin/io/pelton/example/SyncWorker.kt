package io.pelton.example

import android.content.Context
import android.util.Log
import androidx.work.Constraints
import androidx.work.CoroutineWorker
import androidx.work.Data
import androidx.work.ExistingWorkPolicy
import androidx.work.NetworkType
import androidx.work.OneTimeWorkRequest
import androidx.work.WorkManager
import androidx.work.WorkerParameters
import io.pelton.PeltonClient
import io.pelton.PeltonException
import io.pelton.Policy
import io.pelton.Request
import io.pelton.kotlin.download
import java.io.File

/**
 * Downloads the files of a listing on a network that costs nothing. When a constraint ceases to hold, WorkManager
 * stops the worker, which cancels the coroutine and with it the download; the next run goes on where this one ended.
 */
class SyncWorker(context: Context, parameters: WorkerParameters) : CoroutineWorker(context, parameters) {
    override suspend fun doWork(): Result {
        val url = inputData.getString(URL) ?: return Result.failure()
        val target = File(applicationContext.filesDir, "sync")
        val request = Request.builder().url(url).into(target).recursive(true).build()
        val settings = PeltonClient.builder()
            .policy(Policy.EHT)
            .meter(BatteryMeter(applicationContext))
            // Android's own authorities can't be asked from native code: see docs/java.md.
            .caFile(Authorities.export(applicationContext))
        return try {
            settings.build().use { client ->
                val report = client.download(request)
                Log.i(TAG, "${report.filesDone()} files, ${report.joules()} J, ${report.energySource()}")
            }
            Result.success()
        } catch (failure: PeltonException) {
            Log.w(TAG, "the sync failed", failure)
            if (failure.isRetryable && runAttemptCount < MOST_ATTEMPTS) Result.retry() else Result.failure()
        }
    }

    companion object {
        private const val TAG = "SyncWorker"
        private const val NAME = "sync"
        private const val URL = "url"
        private const val MOST_ATTEMPTS = 5

        fun enqueue(context: Context, url: String) {
            val constraints = Constraints.Builder()
                .setRequiredNetworkType(NetworkType.UNMETERED)
                .setRequiresBatteryNotLow(true)
                .build()
            val work = OneTimeWorkRequest.Builder(SyncWorker::class.java)
                .setConstraints(constraints)
                .setInputData(Data.Builder().putString(URL, url).build())
                .build()
            WorkManager.getInstance(context).enqueueUniqueWork(NAME, ExistingWorkPolicy.KEEP, work)
        }

        fun cancel(context: Context) {
            WorkManager.getInstance(context).cancelUniqueWork(NAME)
        }
    }
}
